package standalone

import (
	"fmt"
	"net/http"
)

// Admin serves health for operators: /healthz says that the process lives, /readyz that it can serve.
func (s *Standalone) Admin() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		for _, nc := range s.conns {
			if !nc.IsConnected() {
				http.Error(w, "NATS is away", http.StatusServiceUnavailable)
				return
			}
		}
		fmt.Fprintln(w, "ok")
	})
	return mux
}
