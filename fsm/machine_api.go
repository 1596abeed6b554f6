package fsm

import "io"

// Machine is the replicated state. Apply is called by one goroutine; every other method may be called from any
// goroutine at any time and sees the state between two entries.
type Machine struct{}

// Options are what a machine needs from outside. The zero value keeps everything in memory and works in tests.
type Options struct {
	Observer Observer
}

// New returns an empty machine that knows the vhost "/" with its default and amq.* exchanges.
func New(o Options) *Machine { panic("not built yet") }

// Apply decodes and applies one entry. An unknown format version or opcode, or bytes that no Batch makes, is an
// error: the node must stop rather than diverge.
func (m *Machine) Apply(index, term uint64, entry []byte) ([]Result, error) { panic("not built yet") }

// Applied returns the last applied index and its term.
func (m *Machine) Applied() (index, term uint64) { panic("not built yet") }

// Clock returns the batch clock of the last applied entry, Unix ms.
func (m *Machine) Clock() int64 { panic("not built yet") }

// Hash returns the state hash with the index it belongs to; HashVersion is its definition's number.
func (m *Machine) Hash() (index, hash uint64) { panic("not built yet") }

// HashAt returns the hash after the entry at index, for the last 1,024 entries.
func (m *Machine) HashAt(index uint64) (hash uint64, ok bool) { panic("not built yet") }

// ClusterID returns the id that FoundCluster wrote, or "".
func (m *Machine) ClusterID() string { panic("not built yet") }

// Boots returns the boot ids recorded in the state, sorted by server.
func (m *Machine) Boots() []MemberBoot { panic("not built yet") }

// Totals returns sums over the state in O(1).
func (m *Machine) Totals() Totals { panic("not built yet") }

// Vhost finds a vhost by name.
func (m *Machine) Vhost(name string) (VhostInfo, bool) { panic("not built yet") }

// Vhosts, Exchanges, Queues and Bindings list objects sorted by name (bindings by source, destination, key).
func (m *Machine) Vhosts() []VhostInfo { panic("not built yet") }

// Exchanges lists the exchanges of a vhost by name.
func (m *Machine) Exchanges(vhost uint64) []ExchangeInfo { panic("not built yet") }

// Queues lists the queues of a vhost by name.
func (m *Machine) Queues(vhost uint64) []QueueInfo { panic("not built yet") }

// Bindings lists the bindings of a vhost, those of the default exchange left out.
func (m *Machine) Bindings(vhost uint64) []BindingInfo { panic("not built yet") }

// Exchange finds an exchange by name.
func (m *Machine) Exchange(vhost uint64, name string) (ExchangeInfo, bool) { panic("not built yet") }

// Queue finds a queue by name.
func (m *Machine) Queue(vhost uint64, name string) (QueueInfo, bool) { panic("not built yet") }

// QueueByNumber finds a queue by number.
func (m *Machine) QueueByNumber(number uint64) (QueueInfo, bool) { panic("not built yet") }

// QueuesNumbers returns the numbers of all queues, ascending.
func (m *Machine) QueueNumbers() []uint64 { panic("not built yet") }

// CheckPut says what PutExchange, PutQueue or a DeleteExchange with IfUnused would answer now, without changing
// anything: passive declares use the lookups above, this is for a fast refusal before consensus.
func (m *Machine) Check(c Command) Result { panic("not built yet") }

// Read appends to into the live messages of a queue with sequences from 'from' on, in order, until count messages
// or bytes of bodies are reached (at least one message is returned if there is one), and returns the sequence to
// go on from. A queue that is gone yields nothing. A body that is damaged on disk is an error naming file and offset.
func (m *Machine) Read(queue, from uint64, count, bytes int, into []Message) (out []Message, next uint64, err error) {
	panic("not built yet")
}

// Get reads one live message; ok is false when it is not live or the queue is gone.
func (m *Machine) Get(queue, sequence uint64) (msg Message, ok bool, err error) { panic("not built yet") }

// Live reports how many live messages a queue has in the runs.
func (m *Machine) Live(queue uint64, runs []Run) uint64 { panic("not built yet") }

// Export writes the whole state at one index as a stream that Replace reads. It does not hold up Apply.
func (m *Machine) Export(w io.Writer) (index uint64, err error) { panic("not built yet") }

// Replace swaps the whole state for an exported one; entries up to its index are ignored from then on. On an error
// the old state stays.
func (m *Machine) Replace(r io.Reader) error { panic("not built yet") }
