package bus

import (
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"
)

// Connect connects a service to NATS. While the connection is away nothing is buffered: a publish fails, so that its
// sender knows that nothing was sent. It comes back by itself, for as long as it takes.
func Connect(url, name string, log *slog.Logger, options ...nats.Option) (*nats.Conn, error) {
	options = append([]nats.Option{
		nats.Name(name),
		nats.MaxReconnects(-1),
		nats.ReconnectBufSize(-1),
		nats.ReconnectWait(250 * time.Millisecond),
		nats.ReconnectJitter(250*time.Millisecond, 250*time.Millisecond),
		nats.RetryOnFailedConnect(true),
		nats.IgnoreDiscoveredServers(),
		nats.IgnoreAuthErrorAbort(), // a password that is being changed is tried again, like a server that is away
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				log.Warn("NATS is away", "client", name, "error", err)
			}
		}),
		nats.ReconnectHandler(func(*nats.Conn) { log.Info("NATS is back", "client", name) }),
		nats.ErrorHandler(func(_ *nats.Conn, s *nats.Subscription, err error) {
			subject := ""
			if s != nil {
				subject = s.Subject
			}
			log.Error("NATS", "client", name, "subject", subject, "error", err)
		}),
	}, options...)
	return nats.Connect(url, options...)
}
