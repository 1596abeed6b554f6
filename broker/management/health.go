package management

import (
	"net/http"
	"strings"

	"github.com/warrenmq/warren/protocol/native"
)

// Local reports whether a path is about the node that is asked, and not for the leader to answer.
func Local(escapedPath string) bool {
	path := strings.TrimSuffix(escapedPath, "/")
	return path == "/api/health/checks/local-alarms" || path == "/api/health/checks/node-is-quorum-critical"
}

func lowMemory(short string) bool { return strings.Contains(short, "memory") }
func lowDisk(short string) bool   { return strings.Contains(short, "disk") }

func (c *call) healthy() error { return c.ok(object{"status": "ok"}) }

// unhealthy answers 503 with more fields than a refusal has.
func (c *call) unhealthy(reason string, more object) error {
	more["status"], more["reason"], more["error"] = "failed", reason, "failed"
	answer(c.w, http.StatusServiceUnavailable, more)
	return nil
}

// alarms answers for this node. For the cluster that is the one that serves: its watermarks hold publishers up.
func (c *call) alarms() error {
	short := c.Broker.ShortOf()
	list := []object{}
	for resource, on := range map[string]bool{"memory": lowMemory(short), "disk": lowDisk(short)} {
		if on {
			list = append(list, object{"node": c.nodeName(), "resource": resource})
		}
	}
	if len(list) == 0 {
		return c.healthy()
	}
	return c.unhealthy("There are alarms in effect in the cluster: "+short, object{"alarms": list})
}

// quorumCritical says whether the cluster would be without a majority if this node stopped.
func (c *call) quorumCritical() error {
	status, err := c.Status(c.context)
	if err != nil {
		return err
	}
	self, _ := c.Broker.Self()
	voters, others := 0, 0
	for _, m := range status.Members {
		if m.State == native.StateNonvoter {
			continue
		}
		voters++
		if m.State != native.StateUnreachable && m.ID != self.NodeID {
			others++
		}
	}
	switch {
	case voters <= 1:
		return c.ok(object{"status": "ok", "reason": "single node cluster"})
	case others > voters/2:
		return c.healthy()
	}
	return c.unhealthy("without this node the cluster has no majority", object{"queues": []object{}})
}
