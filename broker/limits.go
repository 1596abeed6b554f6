package broker

import "time"

// Bounds of what clients can make grow.
const (
	maxEntryBytes      = 256 << 10 // of a log entry; a larger single command goes alone
	maxEntryCommands   = 8192
	maxEntriesFlying   = 3       // entries handed to Raft whose results have not been handed out yet
	maxLaneBytes       = 4 << 20 // a session's commands that are not applied yet; then its socket is not read
	maxLaneCommands    = 32_768
	defaultInFlight    = 256 << 20 // Config.MaxInFlight
	laneTurnBytes      = 32 << 10  // what one session may put into an entry before the next one's turn
	maxSessions        = 65_536
	maxChannels        = 2047   // of a session
	maxConsumers       = 65_536 // of a session
	maxListedArguments = 1024   // bytes of a consumer's arguments that lists can show; more are not kept
	maxExchangesCached = 256    // of a session
	readAheadCount     = 256    // messages a view reads at once
	readAheadBytes     = 1 << 20
	maxHandOut         = 16    // times readAheadCount messages that a request hands to consumers before it looks itself
	maxAside           = 16384 // messages of groups that a view sets aside; then it reads no further
	markStep           = 8192  // sequence numbers that a view reserves at once (rule 11)
	maxAckTimeout      = 365 * 24 * time.Hour
	dropStep           = 1000 // objects that one command of a leadership's start deletes

	trimStep    = 4096 // messages that one command drops of a queue whose limit was lowered
	expireStep  = 4096 // messages that one command of expiry ends
	expireBytes = 4096 // what such a command takes in an entry, about

	leaseRetry      = 5 * time.Millisecond
	bootsRetry      = 10 * time.Millisecond
	leadAgain       = 50 * time.Millisecond // after a leadership failed within its term
	verifyTimeout   = 5 * time.Second
	upkeepInterval  = time.Second
	expiryInterval  = 100 * time.Millisecond
	deferredSpare   = 1024                   // messages to be retried later that may be remembered beyond twice those that are there
	maxDeferredWait = 200 * time.Millisecond // between looks at a queue whose messages are to be retried later
	releaseInterval = 50 * time.Millisecond
	releaseStep     = 1024            // delayed messages that are on their way to their queues at once
	expiryIdle      = time.Second     // a queue in which all that is due is held is left alone
	deadRetry       = 5 * time.Second // dead letters that reached no queue and are kept; doubles up to the next
	maxDeadRetry    = time.Minute
)
