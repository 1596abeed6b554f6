package broker

import (
	"strings"
	"sync"

	"github.com/warrenmq/warren/fsm"
)

// ReplyQueue is the name that stands for a channel's own replies: consumed from, it makes the channel a reply
// consumer, and in a request's reply-to property it stands for that consumer's address. Addresses begin with it and a
// dot.
const ReplyQueue = "amq.rabbitmq.reply-to"

const replyPrefix = ReplyQueue + "."

// replies are the channels that take replies directly, by address: at most one address for each channel. They live
// with the leadership.
type replies struct {
	mu       sync.RWMutex
	channels map[string]*Channel // guarded by mu
}

func (r *replies) get(address string) *Channel {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.channels[address]
}

func (r *replies) put(address string, ch *Channel) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.channels == nil {
		r.channels = map[string]*Channel{}
	}
	r.channels[address] = ch
}

func (r *replies) remove(address string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.channels, address)
}

// replyConsumer is a channel's subscription to its replies.
type replyConsumer struct{ tag, address string } // address is empty without one

// ConsumeReplies makes the channel a consumer of replies and returns the address at which they reach it, which nobody
// can guess. An empty tag is made up. started is called with the tag before the first reply. A channel is one such
// consumer at most. Cancel and Close end it. It does not block.
func (ch *Channel) ConsumeReplies(tag string, started func(tag string)) (address string, err error) {
	if tag == "" {
		tag = generatedName("amq.ctag-")
	}
	ch.mu.Lock()
	defer ch.mu.Unlock()
	if err := ch.admit(tag); err != nil {
		return "", err
	}
	if ch.replies.address != "" {
		return "", errorf(fsm.PreconditionFailed, "PRECONDITION_FAILED - reply consumer already set")
	}
	ch.replies = replyConsumer{tag: tag, address: generatedName(replyPrefix)}
	ch.session.leadership.replies.put(ch.replies.address, ch)
	started(tag)
	return ch.replies.address, nil
}

// ReplyAddress is where replies reach the channel, "" when it does not consume them.
func (ch *Channel) ReplyAddress() string {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	return ch.replies.address
}

// endReplies ends the channel's subscription to replies. The caller holds mu.
func (ch *Channel) endReplies() {
	if ch.replies.address != "" {
		ch.session.leadership.replies.remove(ch.replies.address)
		ch.replies = replyConsumer{}
	}
}

// ReplyAlive reports whether a name is ReplyQueue or the address of a reply consumer that is there.
func (s *Session) ReplyAlive(name string) bool {
	return name == ReplyQueue || isReply(name) && s.leadership.replies.get(name) != nil
}

// isReply reports whether a queue's name is an address for replies.
func isReply(name string) bool { return strings.HasPrefix(name, replyPrefix) }

// IsReply reports whether a message published so goes to a reply consumer. Its body must be in one piece: uploads go
// through the log, and it does not.
func IsReply(exchange, key string) bool { return exchange == "" && isReply(key) }

func (p *Publication) isReply() bool { return IsReply(p.Exchange, p.RoutingKey) }

// reply delivers a message straight to the channel that waits for it and returns how many that reached: 1, or 0 when
// nobody is there, the message is an upload, or the client has left too much unread. Nothing is kept.
func (l *leadership) reply(p *Publication) uint32 {
	ch := l.replies.get(p.RoutingKey)
	if ch == nil || p.Upload != 0 {
		return 0
	}
	ch.mu.Lock()
	defer ch.mu.Unlock()
	if ch.closed || ch.replies.address != p.RoutingKey || ch.session.receiver.Full() {
		return 0
	}
	ch.lastTag++
	l.broker.stats.deliveries.Add(1)
	ch.session.receiver.Deliver(Delivery{Channel: ch.ID, ConsumerTag: ch.replies.tag, Tag: ch.lastTag, Queue: ReplyQueue,
		Message: &fsm.Message{RoutingKey: p.RoutingKey, Properties: p.Properties, Body: p.Body}})
	return 1
}
