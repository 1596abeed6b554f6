package server

import (
	"context"
	"errors"
	"net/http"

	"github.com/warrenmq/warren/broker/httpapi"
)

func (s *Server) newWeb() *http.Server {
	return httpapi.NewServer(httpapi.New(httpapi.Config{
		Live: s.node.Err, Ready: s.ready, Status: s.broker.Status, Barrier: s.node.Barrier, Remove: s.broker.Remove,
		Broker: s.broker.Stats, Node: s.node.Stats, Machine: s.machine.Totals, Applied: s.machine.Applied,
		Version: s.config.Cluster.Version,
	}))
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
