package standalone

import (
	"net/http"

	"weir/pkg/obs"
)

// Admin serves health and metrics for operators.
func (s *Standalone) Admin() http.Handler {
	return s.metrics.Admin(func() []obs.Check {
		return []obs.Check{obs.NATS(s.client.NATS), obs.JetStream(s.client.NATS), obs.Writable(s.c.Data)}
	})
}
