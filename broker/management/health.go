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

// alarms answers for the cluster: any node's alarm holds publishers up.
func (c *call) alarms() error {
	status, err := c.Status(c.context)
	if err != nil {
		return err
	}
	list, reasons := []object{}, []string{}
	for _, m := range status.Members {
		list = append(list, alarmsOf(nodePrefix+m.ID, m.Short)...)
		if m.Alarm != "" {
			reasons = append(reasons, m.ID+": "+m.Alarm)
		}
	}
	return c.alarmed("There are alarms in effect in the cluster: "+strings.Join(reasons, "; "), list)
}

// localAlarms answers for the node that is asked.
func (c *call) localAlarms() error {
	reason, short := c.Broker.Alarm()
	return c.alarmed("There are alarms in effect on this node: "+reason, alarmsOf(c.nodeName(), short))
}

func alarmsOf(node, short string) (list []object) {
	if lowMemory(short) {
		list = append(list, object{"node": node, "resource": "memory"})
	}
	if lowDisk(short) {
		list = append(list, object{"node": node, "resource": "disk"})
	}
	return list
}

func (c *call) alarmed(reason string, list []object) error {
	if len(list) == 0 {
		return c.healthy()
	}
	return c.unhealthy(reason, object{"alarms": list})
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
