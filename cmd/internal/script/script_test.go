package script

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/warrenmq/warren/broker/server"
	"github.com/warrenmq/warren/cluster"
	"github.com/warrenmq/warren/cmd/internal/tools"
)

var update = flag.Bool("update", false, "write the scripts anew with what they print now")

// patience bounds an until, and pause is between its tries.
const (
	patience = time.Minute
	pause    = 10 * time.Millisecond
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestScripts runs each script on a node of its own.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no scripts", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			w := newWorld(t)
			var anew bytes.Buffer
			for _, s := range parse(string(text)) {
				if s.command == "" {
					anew.WriteString(s.text)
					continue
				}
				got := w.run(t, &s)
				if !fits(s.expected, got) && !*update {
					t.Errorf("%s:%d: %s\ngot\n%swant\n%s", file, s.line, s.command, got, s.expected)
				}
				anew.WriteString(s.text + merged(s.expected, got))
			}
			if *update {
				if err := os.WriteFile(file, anew.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// step is one step of a script, or text between steps.
type step struct {
	line     int
	text     string // as it is in the script, without the expected output
	command  string
	until    bool
	input    string
	expected string
}

func parse(script string) (steps []step) {
	reading := false // the output of the last step
	for n, line := range strings.SplitAfter(script, "\n") {
		command, isStep := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "> ")
		switch {
		case isStep:
			s := step{line: n + 1, text: line, command: command}
			s.command, s.until = strings.CutPrefix(command, "until ")
			steps, reading = append(steps, s), true
		case reading && strings.HasPrefix(line, "< ") && steps[len(steps)-1].expected == "":
			last := &steps[len(steps)-1]
			last.text += line
			last.input += line[2:]
		case strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#"):
			steps, reading = append(steps, step{text: line}), false
		case reading:
			steps[len(steps)-1].expected += line
		default:
			steps = append(steps, step{text: line})
		}
	}
	return steps
}

// fits compares what a step printed with what was expected.
func fits(expected, got string) bool {
	if !strings.Contains(expected, "<any>") {
		return expected == got
	}
	parts := strings.Split(expected, "<any>")
	for i := range parts {
		parts[i] = regexp.QuoteMeta(parts[i])
	}
	return regexp.MustCompile("^" + strings.Join(parts, "[^\n]*") + "$").MatchString(got)
}

// merged is what was printed, with the lines of the expected output that fit it.
func merged(expected, got string) string {
	want := strings.SplitAfter(expected, "\n")
	lines := strings.SplitAfter(got, "\n")
	for i := range lines {
		if i < len(want) && strings.Contains(want[i], "<any>") && fits(want[i], lines[i]) {
			lines[i] = want[i]
		}
	}
	return strings.Join(lines, "")
}

// world is what a script works on.
type world struct {
	node *server.Server
	amqp *amqp
}

func newWorld(t *testing.T) *world {
	node, err := server.New(server.Config{NativeAddr: "127.0.0.1:0", AMQPAddr: "127.0.0.1:0", HTTPAddr: "127.0.0.1:0",
		Cluster: cluster.Config{DataDir: t.TempDir(), BootstrapExpect: 1, RaftAddr: "127.0.0.1:0", GossipAddr: "127.0.0.1:0"}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- node.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Setenv("WARREN_SERVERS", node.NativeAddr())
	w := &world{node: node}
	if out := w.warren([]string{"list", "vhosts", "--timeout", "1m"}, ""); strings.HasPrefix(out, "!") {
		t.Fatal(out)
	}
	w.amqp = newAMQP(t, node.AMQPAddr())
	return w
}

// run does a step and returns what it prints.
func (w *world) run(t *testing.T, s *step) string {
	words := split(s.command)
	for begin := time.Now(); ; {
		var got string
		switch words[0] {
		case "warren":
			got = w.warren(words[1:], s.input)
		case "amqp":
			got = w.amqp.run(words[1:])
		case "http":
			got = w.http(t, words[1:])
		default:
			t.Fatalf("line %d: there are steps with warren, amqp and http, not with %s", s.line, words[0])
		}
		if got != "" && !strings.HasSuffix(got, "\n") {
			got += "\n"
		}
		if !s.until || s.expected == "" || fits(s.expected, got) || time.Since(begin) > patience {
			return got
		}
		<-time.After(pause)
	}
}

func (w *world) warren(args []string, input string) string {
	var out, failure bytes.Buffer
	tools.Main(args, tools.Streams{In: strings.NewReader(input), Out: &out, Err: &failure})
	for line := range strings.Lines(failure.String()) {
		out.WriteString("! " + line)
	}
	return out.String()
}

func (w *world) http(t *testing.T, words []string) string {
	if len(words) < 2 {
		t.Fatal("http METHOD PATH [BODY]")
	}
	r, err := http.NewRequest(words[0], "http://"+w.node.HTTPAddr()+words[1], strings.NewReader(strings.Join(words[2:], " ")))
	if err != nil {
		t.Fatal(err)
	}
	r.SetBasicAuth("guest", "guest")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(r)
	if err != nil {
		return "! " + err.Error()
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	if err != nil {
		return "! " + err.Error()
	}
	var value any
	if json.Unmarshal(b, &value) == nil {
		b, _ = json.MarshalIndent(value, "", "  ")
	}
	return strings.TrimSpace(fmt.Sprintf("%d\n%s", answer.StatusCode, b))
}

// split returns the words of a line.
func split(line string) (words []string) {
	var word strings.Builder
	quote, in := rune(0), false
	for _, r := range line {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '"' || r == '\'':
			quote, in = r, true
		case r == ' ':
			if in {
				words = append(words, word.String())
			}
			word.Reset()
			in = false
		default:
			word.WriteRune(r)
			in = true
		}
	}
	if in {
		words = append(words, word.String())
	}
	return words
}
