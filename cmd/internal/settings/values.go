package settings

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// The value types below never fail to decode: what is wrong with them is kept and told by Problems together with all
// that is wrong elsewhere.

// Size is a number of bytes: "4096", "64KiB", "1.5GiB", "10MB". "auto" is 0.
type Size struct {
	Bytes   int64
	problem string
}

var sizeUnits = []struct {
	suffix string
	bytes  float64
}{ // longer suffixes first
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40},
	{"kB", 1e3}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12},
	{"K", 1 << 10}, {"M", 1 << 20}, {"G", 1 << 30}, {"T", 1 << 40}, {"B", 1}, {"", 1},
}

// UnmarshalText reads a size. It returns no error.
func (s *Size) UnmarshalText(text []byte) error {
	*s = Size{}
	word := strings.TrimSpace(string(text))
	if word == "auto" {
		return nil
	}
	for _, u := range sizeUnits {
		number, found := strings.CutSuffix(word, u.suffix)
		if !found {
			continue
		}
		n, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		if err != nil || !(n >= 0) || n*u.bytes > math.MaxInt64/2 {
			break
		}
		s.Bytes = int64(n * u.bytes)
		return nil
	}
	s.problem = fmt.Sprintf("%q is no size; write one like 64MiB", word)
	return nil
}

// Span is a length of time: "2s", "1h30m".
type Span struct {
	Duration time.Duration
	problem  string
}

// UnmarshalText reads a span. It returns no error.
func (s *Span) UnmarshalText(text []byte) error {
	*s = Span{}
	d, err := time.ParseDuration(strings.TrimSpace(string(text)))
	if err != nil || d < 0 {
		s.problem = fmt.Sprintf("%q is no length of time; write one like 500ms, 10s or 1h", text)
		return nil
	}
	s.Duration = d
	return nil
}

// Count is a whole number from 0 on.
type Count struct {
	N       int
	problem string
}

// UnmarshalText reads a count. It returns no error.
func (c *Count) UnmarshalText(text []byte) error {
	*c = Count{}
	n, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 31)
	if err != nil {
		c.problem = fmt.Sprintf("%q is no whole number from 0 on", text)
		return nil
	}
	c.N = int(n)
	return nil
}
