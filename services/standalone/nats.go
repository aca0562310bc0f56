package standalone

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// natsServer is the embedded NATS server. It can be stopped and started again under the connections of the services,
// which come back by themselves.
type natsServer struct {
	dir    string
	listen bool   // on a free loopback port, for the commands
	token  string // that the port asks for
	log    *slog.Logger
	quiet  func() // called before the server stops; nil: nothing

	mu  sync.Mutex // guards now
	now *server.Server
}

func (n *natsServer) start() error {
	o := &server.Options{ServerName: "weir", DontListen: !n.listen, JetStream: true, StoreDir: n.dir, NoSigs: true, NoLog: true,
		MaxPayload: 2 << 20, Authorization: n.token, MaxPending: 256 << 20, JetStreamMaxStore: 1 << 40, JetStreamMaxMemory: 4 << 30}
	if n.listen {
		o.Host, o.Port = "127.0.0.1", server.RANDOM_PORT
	}
	s, err := server.NewServer(o)
	if err != nil {
		return fmt.Errorf("standalone: NATS: %w", err)
	}
	s.SetLogger(natsLog{n.log}, false, false)
	go s.Start()
	if !s.ReadyForConnections(30 * time.Second) {
		s.Shutdown()
		return errors.New("standalone: NATS does not start: is the disk of the data folder full?")
	}
	if !s.JetStreamEnabled() {
		s.Shutdown()
		return errors.New("standalone: NATS starts without JetStream: can the data folder's nats/ be written?")
	}
	n.mu.Lock()
	n.now = s
	n.mu.Unlock()
	return nil
}

func (n *natsServer) stop() {
	n.mu.Lock()
	s := n.now
	n.now = nil
	n.mu.Unlock()
	if s != nil {
		if n.quiet != nil {
			n.quiet()
		}
		s.Shutdown()
		s.WaitForShutdown()
	}
}

// InProcessConn connects to the server that runs now (nats.InProcessConnProvider).
func (n *natsServer) InProcessConn() (net.Conn, error) {
	n.mu.Lock()
	s := n.now
	n.mu.Unlock()
	if s == nil {
		return nil, errors.New("standalone: NATS is stopped")
	}
	return s.InProcessConn()
}

func (n *natsServer) url() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.now == nil || !n.listen {
		return ""
	}
	return n.now.ClientURL()
}

// restart stops the server and starts it again; what is done to its store in between may be nil.
func (n *natsServer) restart(between func(dir string) error) error {
	n.stop()
	if between != nil {
		if err := between(n.dir); err != nil {
			return err
		}
	}
	return n.start()
}

// natsLog passes on what the server says that matters.
type natsLog struct{ log *slog.Logger }

func (l natsLog) Noticef(f string, a ...any) { l.log.Debug("NATS: " + fmt.Sprintf(f, a...)) }
func (l natsLog) Warnf(f string, a ...any)   { l.log.Debug("NATS: " + fmt.Sprintf(f, a...)) }
func (l natsLog) Fatalf(f string, a ...any)  { l.log.Error("NATS: " + fmt.Sprintf(f, a...)) }
func (l natsLog) Errorf(f string, a ...any)  { l.log.Error("NATS: " + fmt.Sprintf(f, a...)) }
func (l natsLog) Debugf(string, ...any)      {}
func (l natsLog) Tracef(string, ...any)      {}
