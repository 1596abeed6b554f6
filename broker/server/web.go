package server

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/warrenmq/warren/broker/httpapi"
	"github.com/warrenmq/warren/broker/management"
	"github.com/warrenmq/warren/broker/relay"
)

// newWeb returns what serves HTTP: the node's own paths here, management where the broker serves.
func (s *Server) newWeb() (*http.Server, *relay.Web) {
	own := httpapi.New(httpapi.Config{
		Live: s.node.Err, Ready: s.ready, Status: s.broker.Status, Barrier: s.node.Barrier, Remove: s.broker.Remove,
		Broker: s.broker.Stats, Node: s.node.Stats, Machine: s.machine.Totals, Applied: s.machine.Applied,
		Version: s.config.Cluster.Version,
	})
	here := management.New(management.Config{Broker: s.broker, Status: s.broker.Status, Version: s.config.Cluster.Version, Logger: s.log})
	leader := relay.NewWeb(s.broker, s.node, here, s.log)
	return httpapi.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch path := r.URL.EscapedPath(); {
		case management.Local(path):
			here.ServeHTTP(w, r)
		case strings.HasPrefix(path, "/api/"): // not through a ServeMux, which would change names like ".." in the path
			leader.ServeHTTP(w, r)
		default:
			own.ServeHTTP(w, r)
		}
	})), leader
}

// ready says what this node still waits for before it is of use to clients.
func (s *Server) ready(context.Context) error {
	at := s.node.Leadership()
	switch {
	case s.node.Err() != nil:
		return s.node.Err()
	case at.Server == "":
		return errors.New("no leader is known: wait for an election, or check that a majority of the nodes runs and can be reached")
	case at.Local && !s.broker.Where().Serving:
		return errors.New("this node leads and is still taking over")
	case !s.node.CaughtUp():
		return errors.New("this node is still catching up with the leader's log")
	}
	return nil
}
