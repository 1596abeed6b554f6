// Package tidy checks what the compiler does not: who may import whom, how long files get, and what must not appear where.
package tidy

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	root   = "../../.."
	module = "github.com/warrenmq/warren/"
)

// arrows lists, for each package, what it may import besides the standard library; in our own paths the module is left
// out, and "x/..." is everything below x as well. A new arrow is a decision: write it down in docs/architecture.md too.
var arrows = map[string][]string{
	"protocol/amqp091":          {},
	"protocol/amqp091/generate": {},
	"protocol/native":           {"protocol/amqp091", "github.com/vmihailenco/msgpack/v5"},

	"fsm/store/vfs":         {"golang.org/x/sys/unix"},
	"fsm/store/vfs/vfstest": {"fsm/store/vfs"},
	"fsm/store":             {"fsm/store/vfs"},
	"fsm":                   {"fsm/store/...", "github.com/vmihailenco/msgpack/v5", "github.com/cespare/xxhash/v2", "github.com/hashicorp/raft"},

	"cluster/logstore":      {"fsm/store/vfs", "github.com/hashicorp/raft"},
	"cluster/snapshotstore": {"fsm/store/vfs", "github.com/hashicorp/raft", "github.com/hashicorp/go-hclog"},
	"cluster/stablestore": {"fsm/store/vfs", "github.com/hashicorp/raft", "github.com/hashicorp/raft-boltdb/v2", "go.etcd.io/bbolt",
		"go.etcd.io/bbolt/errors"},
	"cluster/watchdog":    {"github.com/hashicorp/raft"},
	"cluster/clustertest": {"cluster"},
	"cluster/loopback":    {},
	"cluster": {"cluster/...", "fsm/store/vfs", "github.com/hashicorp/raft", "github.com/hashicorp/memberlist", "github.com/hashicorp/go-hclog",
		"github.com/vmihailenco/msgpack/v5"},

	"broker":               {"protocol/...", "fsm", "cluster"},
	"broker/amqp":          {"broker", "fsm", "protocol/amqp091"},
	"broker/amqp/amqptest": {"protocol/amqp091"},
	"broker/native":        {"broker", "fsm", "protocol/native"},
	"broker/httpapi":       {"broker", "fsm", "cluster", "protocol/...", "github.com/prometheus/client_golang/..."},
	"broker/management":    {"broker", "fsm", "protocol/..."},
	"broker/relay":         {"broker", "cluster", "protocol/amqp091"},
	"broker/server":        {"broker/...", "fsm/...", "cluster", "protocol/..."},
	"broker/brokertest":    {"broker/...", "fsm/...", "cluster/...", "protocol/...", "client"},

	"broker/faults":     {}, // tests only
	"broker/simulation": {"broker/server", "client", "cluster/...", "cluster", "fsm/store", "fsm/store/vfs"},

	"client": {"protocol/native"},

	"cmd/internal/failover": {}, // tests only
	"cmd/internal/script":   {}, // tests only
	"cmd/internal/ledger":   {},
	"cmd/internal/bench": {"client", "cmd/internal/ledger", "github.com/HdrHistogram/hdrhistogram-go",
		"github.com/rabbitmq/amqp091-go"},
	"cmd/internal/demo": {"client", "cluster/loopback", "protocol/native", "cmd/internal/bench"},
	"cmd/internal/settings": {"broker/server", "cluster", "github.com/alecthomas/kong", "github.com/BurntSushi/toml", "go.yaml.in/yaml/v3",
		"golang.org/x/sys/unix"},
	"cmd/internal/tools": {"broker/server", "client", "protocol/native", "cmd/internal/...", "github.com/alecthomas/kong"},
	"cmd/warren":         {"cmd/internal/tools"},
}

// maxLines is the length of a file; longFiles are the exceptions, each with its reason.
const maxLines = 500

var longFiles = map[string]string{
	"fsm/messages.go":   "one structure, the messages of a queue; its disk and read sides have files of their own",
	"fsm/rules_test.go": "one test after the other, each named after its rule",
}

type source struct {
	name string // from the root, with slashes
	text []byte
	file *ast.File
	set  *token.FileSet
}

func (s source) test() bool  { return strings.HasSuffix(s.name, "_test.go") }
func (s source) dir() string { return path.Dir(s.name) }

func (s source) imports() []string {
	var paths []string
	for _, i := range s.file.Imports {
		p, _ := strconv.Unquote(i.Path.Value)
		paths = append(paths, p)
	}
	return paths
}

func sources(t *testing.T) []source {
	t.Helper()
	var all []source
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && name != root && strings.HasPrefix(d.Name(), ".") {
			return filepath.SkipDir
		}
		if d.IsDir() || filepath.Ext(name) != ".go" {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name, text, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		all = append(all, source{filepath.ToSlash(relative), text, file, set})
		return nil
	})
	if err != nil || len(all) < 50 {
		t.Fatalf("%d sources: %v", len(all), err)
	}
	return all
}

// TestImportArrows: dependencies point one way, and a new one is a decision.
func TestImportArrows(t *testing.T) {
	for _, s := range sources(t) {
		if s.test() {
			continue
		}
		allowed, known := arrows[s.dir()]
		if !known {
			t.Errorf("%s: package %s is not in the list of arrows", s.name, s.dir())
			continue
		}
		for _, p := range s.imports() {
			p = strings.TrimPrefix(p, module)
			first, _, _ := strings.Cut(p, "/")
			own := slices.Contains([]string{"broker", "client", "cluster", "cmd", "fsm", "protocol"}, first)
			if !own && !strings.Contains(first, ".") {
				continue // standard library
			}
			if !slices.ContainsFunc(allowed, func(a string) bool {
				prefix, tree := strings.CutSuffix(a, "/...")
				return p == prefix || tree && strings.HasPrefix(p, prefix+"/")
			}) {
				t.Errorf("%s imports %s, which %s may not", s.name, p, s.dir())
			}
		}
	}
}

// TestRule24OnlyOneFileOfTheStateMachineKnowsRaft: fsm/raft.go.
func TestRule24OnlyOneFileOfTheStateMachineKnowsRaft(t *testing.T) {
	for _, s := range sources(t) {
		if strings.HasPrefix(s.name, "fsm/") && !s.test() && s.name != "fsm/raft.go" && slices.Contains(s.imports(), "github.com/hashicorp/raft") {
			t.Errorf("%s imports hashicorp/raft; only fsm/raft.go may", s.name)
		}
	}
}

// generated is the beginning of a file that nobody edits; it may be as long as it has to.
var generated = []byte("// Code generated ")

// TestFileLength: a file is one idea.
func TestFileLength(t *testing.T) {
	for _, s := range sources(t) {
		if n := bytes.Count(s.text, []byte("\n")); n > maxLines && longFiles[s.name] == "" && !bytes.HasPrefix(s.text, generated) {
			t.Errorf("%s has %d lines, more than %d: split it by ideas, or say in longFiles why not", s.name, n, maxLines)
		}
	}
}

// nondeterministic lists what the state machine must not use: everything that differs between nodes.
var nondeterministic = map[string][]string{"time": {"Now", "Since", "Until", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick", "Sleep"}}

// goStatements are the files of fsm in which goroutines are started, none of them during apply.
var goStatements = map[string]string{
	"fsm/messages_disk.go": "reads bodies back ahead of the views",
}

// TestStateMachineIsDeterministic: no clock, no randomness and no goroutine in fsm.
func TestStateMachineIsDeterministic(t *testing.T) {
	for _, s := range sources(t) {
		if s.dir() != "fsm" || s.test() {
			continue
		}
		for _, p := range s.imports() {
			if p == "math/rand" || p == "math/rand/v2" || p == "crypto/rand" || p == "hash/maphash" {
				t.Errorf("%s imports %s", s.name, p)
			}
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				if goStatements[s.name] == "" {
					t.Errorf("%s: a go statement", s.set.Position(n.Pos()))
				}
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && slices.Contains(nondeterministic[x.Name], n.Sel.Name) {
					t.Errorf("%s: %s.%s", s.set.Position(n.Pos()), x.Name, n.Sel.Name)
				}
			}
			return true
		})
	}
}

// TestTestsDoNotSleep: a test waits for a condition. In a synctest bubble time is virtual and sleeping is how it passes.
func TestTestsDoNotSleep(t *testing.T) {
	for _, s := range sources(t) {
		if !s.test() || slices.Contains(s.imports(), "testing/synctest") {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok && sel.Sel.Name == "Sleep" {
				if x, ok := sel.X.(*ast.Ident); ok && x.Name == "time" {
					t.Errorf("%s: time.Sleep in a test", s.set.Position(n.Pos()))
				}
			}
			return true
		})
	}
}
