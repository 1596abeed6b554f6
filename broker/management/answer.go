package management

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/warrenmq/warren/broker"
	"github.com/warrenmq/warren/fsm"
)

// object is a JSON object of an answer.
type object = map[string]any

// refusal is the body of every answer that is not a success.
type refusal struct {
	Code   string `json:"error"`
	Reason string `json:"reason"`
}

// answer writes a JSON answer.
func answer(w http.ResponseWriter, status int, body any) {
	data, err := json.Marshal(body)
	if err != nil {
		status, data = http.StatusInternalServerError, []byte(`{"error":"internal","reason":"the answer cannot be encoded"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-cache")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(data) // a client that went away is no error
}

// ok answers 200 with an object or list.
func (c *call) ok(body any) error {
	answer(c.w, http.StatusOK, body)
	return nil
}

// done answers a success without a body.
func (c *call) done(status int) error {
	c.w.WriteHeader(status)
	return nil
}

// put answers a PUT: 201 for something new, 204 for what was there.
func (c *call) put(existed bool) error {
	if existed {
		return c.done(http.StatusNoContent)
	}
	return c.done(http.StatusCreated)
}

// fromBroker finds the status for a refusal of the broker's. Its text loses the code's name in front.
func fromBroker(e *broker.Error) *failure {
	reason := e.Message
	if name, text, ok := strings.Cut(e.Message, " - "); ok && strings.ToUpper(name) == name {
		reason = text
	}
	switch e.Code {
	case fsm.NotFound:
		return errNotFound
	case fsm.AccessRefused:
		return &failure{http.StatusUnauthorized, refusal{"not_authorised", reason}}
	case broker.NotLeader, broker.NoLeader, broker.LeadershipLost, broker.Overloaded:
		return &failure{http.StatusServiceUnavailable, refusal{"service_unavailable", reason}}
	case fsm.InternalError:
		return &failure{http.StatusInternalServerError, refusal{"internal", reason}}
	}
	return &failure{http.StatusBadRequest, refusal{"bad_request", reason}}
}
