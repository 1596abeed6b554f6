package cluster

import (
	"context"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
)

// raftLogger passes raft's log on. An operator sees what this package says of elections, joins and damage; raft's
// own lines are for debugging, except errors that are not merely another node being away.
func raftLogger(log *slog.Logger) hclog.Logger {
	l := hclog.NewInterceptLogger(&hclog.LoggerOptions{Output: io.Discard, Level: hclog.Off})
	l.RegisterSink(raftSink{log.With("from", "raft")})
	return l
}

type raftSink struct{ log *slog.Logger }

// expected begins errors that raft logs in the ordinary course of a peer's absence or an election.
var expected = []string{"failed to heartbeat", "failed to appendEntries", "failed to make requestVote", "failed to pipeline",
	"failed to decode incoming", "failed to flush response", "peer has newer term", "failed to start pipeline", "peer ", "error while", "failed to accept"}

func (s raftSink) Accept(_ string, level hclog.Level, msg string, args ...any) {
	to := slog.LevelDebug
	if level >= hclog.Error {
		to = slog.LevelWarn
		for _, e := range expected {
			if strings.HasPrefix(msg, e) {
				to = slog.LevelDebug
			}
		}
	}
	s.log.Log(context.Background(), to, msg, args...)
}

// debugWriter passes lines of a log.Logger on at debug level.
type debugWriter struct{ log *slog.Logger }

func (w debugWriter) Write(p []byte) (int, error) {
	w.log.Debug(strings.TrimSpace(string(p)))
	return len(p), nil
}

// sparseEvery is how often a sparse warning may be written.
const sparseEvery = 10 * time.Second

// sparse keeps strangers from filling the log: of a warning that they can cause it writes one at a time, with the
// number of those left out since the last. Safe for concurrent use.
type sparse struct {
	mu      sync.Mutex // guards the two that follow
	last    time.Time
	leftOut int
}

func (s *sparse) warn(log *slog.Logger, msg string, args ...any) {
	s.mu.Lock()
	now := time.Now()
	if !s.last.IsZero() && now.Sub(s.last) < sparseEvery {
		s.leftOut++
		s.mu.Unlock()
		return
	}
	leftOut := s.leftOut
	s.last, s.leftOut = now, 0
	s.mu.Unlock()
	if leftOut > 0 {
		args = append(args, "left_out", leftOut)
	}
	log.Warn(msg, args...)
}
