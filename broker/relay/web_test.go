package relay

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// startWeb runs a handler on a node of the town that says its name, who asks and for what.
func (n *town) startWeb(t *testing.T, name string) *httptest.Server {
	r := &resident{n, name}
	w := NewWeb(r, r, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = io.WriteString(rw, strings.Join([]string{name, r.Method, r.URL.EscapedPath(), r.Header.Get("Authorization"),
			r.RemoteAddr, r.Header.Get(peerHeader), string(body)}, " "))
	}), nil)
	s := httptest.NewServer(w)
	t.Cleanup(func() {
		n.kill(name)
		s.Close()
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		defer cancel()
		w.Close(ctx)
		n.work.Wait()
	})
	return s
}

func ask(t *testing.T, s *httptest.Server, path, body string) (status int, answer string) {
	t.Helper()
	r, err := http.NewRequest("PUT", s.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Basic x")
	r.Header.Set(peerHeader, "10.0.0.1:1") // which nobody believes
	a, err := s.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	b, err := io.ReadAll(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	return a.StatusCode, string(b)
}

func TestTheLeaderAnswersRequests(t *testing.T) {
	n := newTown()
	a, b := n.startWeb(t, "a"), n.startWeb(t, "b")
	for _, leader := range []string{"a", "b", "a"} {
		n.lead(leader)
		for _, at := range []*httptest.Server{a, b} {
			status, said := ask(t, at, "/api/queues/%2F/a%2fb", "{}")
			if want := leader + " PUT /api/queues/%2F/a%2fb Basic x 127.0.0.1:"; status != 200 || !strings.HasPrefix(said, want) || !strings.HasSuffix(said, " {}") {
				t.Errorf("%d %q, want %q", status, said, want)
			}
			if strings.Contains(said, "10.0.0.1") {
				t.Errorf("a client's word for its address was passed on: %q", said)
			}
		}
	}
	n.lead("nobody")
	if status, said := ask(t, b, "/api/overview", ""); status != 503 || !strings.Contains(said, `"reason":`) {
		t.Errorf("%d %q", status, said)
	}
	n.lead("")
	began := time.Now()
	if status, said := ask(t, b, "/api/overview", ""); status != 503 || !strings.Contains(said, "no node leads") {
		t.Errorf("%d %q", status, said)
	}
	if took := time.Since(began); took > patience {
		t.Errorf("without a leader the answer took %v", took)
	}
}
