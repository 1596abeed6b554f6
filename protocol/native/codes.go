package native

// Code says how a request ended. Zero is success; the others are AMQP 0-9-1 reply codes and Warren's own from 600.
type Code = uint16

// The codes of this protocol's own and the AMQP ones that its responses carry most.
const (
	OK                 Code = 0
	ContentTooLarge    Code = 311
	NoRoute            Code = 312
	ConnectionForced   Code = 320
	InvalidPath        Code = 402
	AccessRefused      Code = 403
	NotFound           Code = 404
	ResourceLocked     Code = 405
	PreconditionFailed Code = 406
	FrameError         Code = 501
	SyntaxError        Code = 502
	CommandInvalid     Code = 503
	ChannelError       Code = 504
	UnexpectedFrame    Code = 505
	ResourceError      Code = 506
	NotAllowed         Code = 530
	NotImplemented     Code = 540
	InternalError      Code = 541

	// NotLeader: another node leads; the request had no effect. The message says who, and a redirect push came with it.
	NotLeader Code = 600
	// NoLeader: nobody leads now; the request had no effect.
	NoLeader Code = 601
	// LeadershipLost: leadership ended before the outcome was known; the request may or may not have taken effect.
	LeadershipLost Code = 602
	// Overloaded: a bound was reached; the request had no effect.
	Overloaded Code = 603
	// StaleTerm: the request was made under another leadership; it had no effect.
	StaleTerm Code = 610
	// SequenceTooOld: a publish's sequence lies below the deduplication window; it had no effect.
	SequenceTooOld Code = 611
	// QueueFull: a queue that the publish leads to has no room for it and refused it; other queues may have it.
	QueueFull Code = 612
)
