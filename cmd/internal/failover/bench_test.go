package failover

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// TestBenchOutlivesTheLeader: over both protocols bench goes on with the next leader, and accounts for everything.
func TestBenchOutlivesTheLeader(t *testing.T) {
	c := startCluster(t, 3)
	var amqp []string
	for _, n := range c.nodes {
		amqp = append(amqp, n.addr.amqp)
	}
	for protocol, servers := range map[string][]string{"native": c.Servers(), "amqp": amqp} {
		t.Run(protocol, func(t *testing.T) {
			leader := c.Leader()
			before := leader.Metric("warren_publishes_total")
			var out, failure bytes.Buffer
			run := exec.Command(warren, "bench", "--protocol", protocol, "--servers", strings.Join(servers, ","), "--publishers", "2", "--consumers", "2",
				"--rate", "1000", "--duration", "4s", "--timeout", "20s", "--json")
			run.Stdout, run.Stderr = &out, &failure
			c.check(run.Start())
			ended := make(chan error, 1)
			go func() { ended <- run.Wait() }()
			await(t, time.Minute, "messages", func() error {
				if n := leader.Metric("warren_publishes_total") - before; n < 500 {
					return fmt.Errorf("%v have come", n)
				}
				return nil
			})
			leader.Kill()
			err := <-ended
			var r struct{ Confirmed, Lost, Errors uint64 }
			if e := json.Unmarshal(out.Bytes(), &r); e != nil || err != nil || r.Confirmed < 1000 || r.Lost > 0 || r.Errors > 0 {
				t.Errorf("%v, %v: %s%s", err, e, &out, &failure)
			}
			leader.Start()
			c.Ready()
		})
	}
}
