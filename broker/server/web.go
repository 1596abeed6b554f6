package server

import "net/http"

func (s *Server) newWeb() *http.Server {
	return &http.Server{Handler: http.NotFoundHandler()}
}
