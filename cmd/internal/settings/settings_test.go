package settings

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
)

var update = flag.Bool("update", false, "write docs/configuration.md")

func parse(t *testing.T, args ...string) *Serve {
	t.Helper()
	var c struct {
		Serve struct{ Serve } `cmd:""`
	}
	parser, err := kong.New(&c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parser.Parse(append([]string{"serve"}, args...)); err != nil {
		t.Fatal(err)
	}
	return &c.Serve.Serve
}

func write(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestDefaultsHaveNoProblems(t *testing.T) {
	s := parse(t)
	if p := s.Problems(); len(p) > 0 {
		t.Fatal(p)
	}
	c := s.Config(nil, "v")
	if c.NativeAddr != "127.0.0.1:5670" || c.Cluster.SnapshotBytes != 64<<20 || c.Cluster.DiskTimeout != 2*time.Second ||
		c.Cluster.BootstrapExpect != 1 || c.Memory.Bodies == 0 || c.CollectRecords != 2000 || c.Cluster.Version != "v" {
		t.Errorf("%+v", c)
	}
}

func TestFlagWinsOverEnvironmentOverFile(t *testing.T) {
	for _, file := range []string{
		write(t, "a.toml", "node-id = 'file'\nnative-addr = '127.0.0.1:1'\nhttp-addr = '127.0.0.1:2'\nsegment-size = '2MiB'\ncollect-records = 7\nbootstrap-expect = 3\njoin = ['a:1', 'b:2']\n"),
		write(t, "a.yaml", "node-id: file\nnative-addr: 127.0.0.1:1\nhttp-addr: 127.0.0.1:2\nsegment-size: 2MiB\ncollect-records: 7\nbootstrap-expect: 3\njoin: [a:1, b:2]\n"),
	} {
		t.Run(filepath.Ext(file), func(t *testing.T) {
			t.Setenv("WARREN_NATIVE_ADDR", "127.0.0.1:10")
			t.Setenv("WARREN_NODE_ID", "env")
			t.Setenv("WARREN_CONFIG", file)
			s := parse(t, "--node-id", "flag")
			if p := s.Problems(); len(p) > 0 {
				t.Fatal(p)
			}
			if s.NodeID != "flag" || s.NativeAddr != "127.0.0.1:10" || s.HTTPAddr != "127.0.0.1:2" || s.RaftAddr != "127.0.0.1:5680" {
				t.Errorf("node-id %s, native %s, http %s, raft %s", s.NodeID, s.NativeAddr, s.HTTPAddr, s.RaftAddr)
			}
			if s.SegmentSize.Bytes != 2<<20 || s.CollectRecords.N != 7 || len(s.Join) != 2 || s.Join[1] != "b:2" {
				t.Errorf("%+v", s)
			}
		})
	}
}

func TestWhoMayLogIn(t *testing.T) {
	for _, c := range []struct {
		flags []string
		want  []string
	}{{nil, []string{"guest"}}, {[]string{"--loopback-users", "none"}, []string{}}, {[]string{"--loopback-users", "a,b"}, []string{"a", "b"}}} {
		s := parse(t, c.flags...)
		if p := s.Problems(); len(p) > 0 {
			t.Fatal(p)
		}
		got := s.Config(nil, "").Broker
		if got.DefaultUser != "guest" || got.DefaultPassword != "guest" || got.LoopbackUsers == nil || !slices.Equal(got.LoopbackUsers, c.want) {
			t.Errorf("%v: %+v", c.flags, got)
		}
	}
	for _, bad := range []string{"--loopback-users=", "--loopback-users=none,x"} {
		if s := parse(t, bad); len(s.Problems()) == 0 {
			t.Errorf("%s was taken", bad)
		}
	}
}

func TestAllProblemsAtOnce(t *testing.T) {
	file := write(t, "bad.toml", "nodeid = 'x'\nhelp = true\ndata-dir = ['a', 3]\n")
	t.Setenv("WARREN_DISK_TIMEOUT", "soon")
	s := parse(t, "--config", file, "--node-id", "a b", "--native-addr", "0.0.0.0:5670", "--http-addr", "[::]:80", "--raft-addr", "nowhere",
		"--gossip-addr", "127.0.0.1:http", "--advertise-gossip", "0.0.0.0:1", "--timing", "slow", "--log-store", "paper",
		"--segment-size", "1KiB", "--snapshot-log-bytes", "much", "--snapshot-rate", "1KiB", "--memory", "1KiB", "--bootstrap-expect", "3", "--join", "",
		"--log-level", "loud", "--log-format", "xml", "--close-within", "0s", "--collect-records=-1", "--index-memory-messages=0", "--snapshot-age=-1s",
		"--default-user=", "--default-password=", "--loopback-users", "none,guest", "--consumer-timeout=-1s")
	all := strings.Join(s.Problems(), "\n")
	for _, want := range []string{`no setting "nodeid"`, `no setting "help"`, "data-dir must be", "--disk-timeout", "--node-id", "--advertise-native: is needed",
		"--advertise-http: is needed", "--raft-addr", "--gossip-addr", "--advertise-gossip", "--timing", "--log-store", "--segment-size",
		"--snapshot-log-bytes", "--snapshot-rate", "--memory", "--join", "--log-level", "--log-format", "--close-within", "--collect-records", "--index-memory-messages", "--snapshot-age",
		"--default-user", "--default-password", "--loopback-users", "--consumer-timeout"} {
		if !strings.Contains(all, want) {
			t.Errorf("not told: %s", want)
		}
	}
	if t.Failed() {
		t.Log(all)
	}
}

func TestFileProblems(t *testing.T) {
	for name, file := range map[string]string{
		"missing":   filepath.Join(t.TempDir(), "none.toml"),
		"extension": write(t, "settings.json", "{}"),
		"syntax":    write(t, "broken.yaml", "a: [b"),
	} {
		if p := parse(t, "--config", file).Problems(); len(p) != 1 || !strings.HasPrefix(p[0], "--config: ") {
			t.Errorf("%s: %q", name, p)
		}
	}
}

func TestJoiningNodeDoesNotFormAClusterAlone(t *testing.T) {
	if p := parse(t, "--join", "127.0.0.1:5790").Problems(); len(p) != 1 || !strings.HasPrefix(p[0], "--bootstrap-expect") {
		t.Errorf("%q", p)
	}
	if p := parse(t, "--join", "127.0.0.1:5690").Problems(); len(p) != 0 {
		t.Errorf("only its own address: %q", p)
	}
}

func TestSizes(t *testing.T) {
	for text, want := range map[string]int64{"0": 0, "auto": 0, "17": 17, "64MiB": 64 << 20, "1.5GiB": 3 << 29, "10MB": 10e6, "4 KiB": 4096, "2G": 2 << 30, "9B": 9} {
		var s Size
		if _ = s.UnmarshalText([]byte(text)); s.Bytes != want || s.problem != "" {
			t.Errorf("%s: %+v, want %d", text, s, want)
		}
	}
	for _, text := range []string{"", "MiB", "-1", "1XB", "NaN", "1e30GiB", "1 2"} {
		var s Size
		if _ = s.UnmarshalText([]byte(text)); s.problem == "" {
			t.Errorf("%q is taken as %d", text, s.Bytes)
		}
	}
}

func TestReferenceIsCurrent(t *testing.T) {
	want, err := Reference()
	if err != nil {
		t.Fatal(err)
	}
	const path = "../../../docs/configuration.md"
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil || string(got) != want {
		t.Errorf("%s is out of date (%v); run go generate ./cmd/internal/settings", path, err)
	}
}
