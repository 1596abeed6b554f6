package server

// Memory is how a node's memory budget is divided, in bytes. A zero field leaves that bound out, or takes the default of
// the package that keeps it.
type Memory struct {
	Live      uint64 // live heap, above which publishes are held up
	Bodies    int64  // bodies that are in message files and stay in memory too
	Stored    int64  // those bodies and the index of all messages together: the longer the index, the fewer bodies stay
	Unwritten int64  // bodies that are in no message file yet, above which publishes are held up
	InFlight  int64  // commands of all connections that are not applied yet
}

// snapshotsInUnwritten is how many snapshots' logs fit into Memory.Unwritten: one is being written while the next comes
// in, and there is room for a disk that is slow for a while.
const snapshotsInUnwritten = 4

// Divide divides a budget for the whole node. Stored and Unwritten together are less than three quarters of Live, where
// publishers begin to be slowed. The quarter above Live is for what is garbage until it is collected, for
// stacks and buffers: with the budget as the runtime's memory limit the process stays below it.
func Divide(budget uint64) Memory {
	part := func(of uint64) int64 { return int64(budget / of) }
	return Memory{Live: budget / 4 * 3, Bodies: part(4), Stored: part(8) * 3, Unwritten: part(8), InFlight: part(16)}
}
