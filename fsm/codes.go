package fsm

// Code says how a command ended. Zero is success; the others are AMQP 0-9-1 reply codes (section 1.1 of the
// specification's constants), so that both protocols can pass them on, and a few of Warren's own from 600 on.
type Code uint16

// The codes a command can end with.
const (
	OK                 Code = 0
	NoRoute            Code = 312
	ContentTooLarge    Code = 311
	AccessRefused      Code = 403
	NotFound           Code = 404
	ResourceLocked     Code = 405
	PreconditionFailed Code = 406
	CommandInvalid     Code = 503
	NotAllowed         Code = 530
	NotImplemented     Code = 540
	InternalError      Code = 541
	// StaleTerm: the command's batch was made under another leadership than the one that committed it; it had
	// no effect (rule 1).
	StaleTerm Code = 610
	// SequenceTooOld: a publish's producer sequence lies below the deduplication window; it had no effect (rule 5).
	SequenceTooOld Code = 611
	// QueueFull: a queue that the publish leads to refused it for want of room (x-overflow); other queues may have it.
	// It does not count as having taken effect (rule 5).
	QueueFull Code = 612
)
