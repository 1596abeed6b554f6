package cluster

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestStrangersDoNotFillTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		var s sparse
		log := slog.New(slog.NewTextHandler(&out, nil))
		for range 1000 {
			s.warn(log, "refused")
		}
		<-time.After(sparseEvery)
		s.warn(log, "refused")
		if got := out.String(); strings.Count(got, "refused") != 2 || !strings.Contains(got, "left_out=999") {
			t.Errorf("%s", got)
		}
	})
}
