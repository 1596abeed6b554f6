package fsm

import "github.com/warrenmq/warren/fsm/store/vfs"

// Machine is the replicated state. Apply is called by one goroutine; every other method may be called from any
// goroutine at any time and sees the state between two entries.
type Machine struct{}

// Options are what a machine needs from outside. The zero value keeps everything in memory and works in tests.
type Options struct {
	Observer Observer
	// Files and Dir are where message files are kept. Without them everything stays in memory.
	Files vfs.FS
	Dir   string
	// BodyMemory is how many bytes of bodies may stay in memory once they are in files; 0 is DefaultBodyMemory.
	BodyMemory int64
	// A queue whose message files hold more than CollectRecords records (0: 2000), fewer than half of them live, and a
	// file of more than CollectBytes (0: 64 MiB), over half of it dead, is copied to a new file at a snapshot.
	CollectRecords int
	CollectBytes   int64
}

// DefaultBodyMemory is Options.BodyMemory when it is zero.
const DefaultBodyMemory = 512 << 20

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

// Live reports how many live messages a queue has in the runs.
func (m *Machine) Live(queue uint64, runs []Run) uint64 { panic("not built yet") }
