package fsm

// maxRetryMultiplier bounds x-delayed-retry-multiplier.
const maxRetryMultiplier = 1000

// retry says for how long a returned message waits before it is delivered again. Its zero value lets it not wait.
type retry struct {
	first, most int64 // ms; most 0 is no bound of its own
	factor      int64 // of each wait to the one before; 0: the n-th wait is n times the first
}

// retry reads RabbitMQ's arguments, and x-delayed-retry-multiplier for waits that grow by a factor. Warren counts every
// return as a failed delivery, so that the types all, failed and returned are the same.
func (s *settings) retry() (r retry) {
	kind, given := s.text("x-delayed-retry-type")
	if given && kind == "disabled" {
		return r
	}
	r.first = min(max(s.integer("x-delayed-retry-min"), 0), maxPeriod)
	r.most = max(s.integer("x-delayed-retry-max"), 0)
	r.factor = max(s.integer("x-delayed-retry-multiplier"), 0)
	return r
}

// wait returns for how many ms a message waits when it has been returned for the n-th time.
func (r *retry) wait(n int64) int64 {
	most := int64(maxPeriod)
	if r.most > 0 {
		most = min(most, r.most)
	}
	switch {
	case r.first <= 0 || n <= 0:
		return 0
	case r.factor == 0:
		return min(r.first*n, most)
	}
	wait := r.first
	for ; n > 1 && r.factor > 1 && wait < most; n-- {
		if wait > most/r.factor {
			return most
		}
		wait *= r.factor
	}
	return min(wait, most)
}
