package standalone

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"

	"github.com/nats-io/nats.go"

	"weir/pkg/app"
	"weir/pkg/bus"
	"weir/pkg/objectid"
	"weir/pkg/obs"
	"weir/pkg/settings"
	"weir/services/gateway/gatewayd"
	"weir/services/host/hostd"
	"weir/services/router/routerd"
)

// Config is what the standalone mode works with.
type Config struct {
	App     *app.App
	Data    string // the data folder
	Log     *slog.Logger
	Limits  hostd.Limits
	Listen  net.Listener // where the gateway serves; nil: no gateway
	Origins []string
	Proxies []string
	Explain bool // show failures to browsers: for development
	Clients settings.Clients
	Port    bool // let NATS listen on a loopback port, and tell the commands where in run.json
	// Quiet, if it is set, is called before the embedded NATS stops. Stopped in the middle of traffic it may leave a
	// goroutine of its file store behind, which a test would find.
	Quiet func()
	// Barrier, if it is set, stands in for what makes an object's commits durable. For faults, and to measure.
	Barrier func(id objectid.ID, sync func() error) error
}

// Standalone is everything in one process.
type Standalone struct {
	c       Config
	folder  *hostd.Folder
	nats    *natsServer
	host    *hostd.Host
	router  *routerd.Router
	gateway *gatewayd.Gateway
	conns   []*nats.Conn
	client  *bus.Client
	token   string
	once    sync.Once
	metrics *obs.Metrics
	err     error
}

// RunFile is what run.json says: where the commands find a running process.
type RunFile struct {
	App   string `json:"app"`
	NATS  string `json:"nats"`
	Token string `json:"token"`
	PID   int    `json:"pid"`
}

// Open takes the data folder and starts everything in it. On an error nothing is left running.
func Open(ctx context.Context, c Config) (s *Standalone, err error) {
	s = &Standalone{c: c, metrics: obs.New(c.App.Name, "standalone")}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if s.folder, err = hostd.OpenFolder(c.Data); err != nil {
		return s, err
	}
	b := make([]byte, 16)
	_, _ = rand.Read(b)
	s.token = hex.EncodeToString(b)
	s.nats = &natsServer{dir: filepath.Join(c.Data, "nats"), listen: c.Port, log: c.Log, token: s.token, quiet: c.Quiet}
	if err = s.nats.start(); err != nil {
		return s, err
	}
	if s.router, err = open(ctx, s, "router", func(nc *nats.Conn) (*routerd.Router, error) {
		return routerd.Open(ctx, routerd.Config{App: c.App, NATS: nc, Log: c.Log.With("service", "router")})
	}); err != nil {
		return s, err
	}
	if s.host, err = open(ctx, s, "host", func(nc *nats.Conn) (*hostd.Host, error) {
		return hostd.Open(ctx, hostd.Config{App: c.App, NATS: nc, Folder: s.folder, Log: c.Log.With("service", "host"), Limits: c.Limits, Barrier: c.Barrier, Metrics: s.metrics})
	}); err != nil {
		return s, err
	}
	if c.Listen != nil {
		if s.gateway, err = open(ctx, s, "gateway", func(nc *nats.Conn) (*gatewayd.Gateway, error) {
			return gatewayd.Open(ctx, gatewayd.Config{App: c.App, NATS: nc, Log: c.Log.With("service", "gateway"), Origins: c.Origins, Proxies: c.Proxies, Metrics: s.metrics, Explain: c.Explain, Clients: c.Clients})
		}); err != nil {
			return s, err
		}
	}
	nc, err := s.Connect("commands")
	if err != nil {
		return s, err
	}
	s.client = bus.NewClient(nc, c.App.Name)
	return s, s.writeRunFile()
}

// open connects a service and opens it.
func open[T any](_ context.Context, s *Standalone, name string, do func(*nats.Conn) (T, error)) (T, error) {
	nc, err := s.Connect(name)
	if err != nil {
		var none T
		return none, err
	}
	return do(nc)
}

// Connect makes a connection of one service's own.
func (s *Standalone) Connect(name string) (*nats.Conn, error) {
	nc, err := bus.Connect("", "weir "+name, s.c.Log, nats.InProcessServer(s.nats), nats.Token(s.token))
	if err != nil {
		return nil, fmt.Errorf("standalone: connect %s: %w", name, err)
	}
	s.conns = append(s.conns, nc)
	return nc, nil
}

func (s *Standalone) writeRunFile() error {
	if !s.c.Port {
		return nil
	}
	data, err := json.MarshalIndent(RunFile{App: s.c.App.Name, NATS: s.nats.url(), Token: s.token, PID: os.Getpid()}, "", "  ")
	if err != nil {
		return err
	}
	path := filepath.Join(s.c.Data, "run.json")
	if err := os.WriteFile(path+".new", append(data, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// Client asks objects.
func (s *Standalone) Client() *bus.Client { return s.client }

// RestartNATS stops the embedded NATS and starts it again under the running services. between may change what it has
// stored, as a fault would; nil leaves it.
func (s *Standalone) RestartNATS(between func(dir string) error) error {
	if err := s.nats.restart(between); err != nil {
		return err
	}
	return s.writeRunFile()
}

// Run works until ctx ends, or a part cannot go on.
func (s *Standalone) Run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var wg sync.WaitGroup
	var mu sync.Mutex
	var all error
	runs := []func(context.Context) error{s.host.Run, s.router.Run}
	if s.gateway != nil {
		runs = append(runs, s.serve)
	}
	for _, run := range runs {
		wg.Go(func() {
			err := run(ctx)
			if err != nil {
				stop() // and with it the others
			}
			mu.Lock()
			all = errors.Join(all, err)
			mu.Unlock()
		})
	}
	wg.Wait()
	return all
}

// serve serves HTTP until ctx ends.
func (s *Standalone) serve(ctx context.Context) error { return s.gateway.Run(ctx, s.c.Listen) }

// Close finishes running calls and stops everything, gateway first. It may be called again.
func (s *Standalone) Close() error {
	s.once.Do(func() {
		if s.gateway != nil {
			s.err = errors.Join(s.err, s.gateway.Close())
		}
		if s.host != nil {
			s.err = errors.Join(s.err, s.host.Close())
		}
		if s.router != nil {
			s.err = errors.Join(s.err, s.router.Close())
		}
		for _, nc := range s.conns {
			nc.Close()
		}
		if s.nats != nil {
			s.nats.stop()
		}
		if s.folder != nil {
			if s.c.Port {
				_ = os.Remove(filepath.Join(s.c.Data, "run.json"))
			}
			s.err = errors.Join(s.err, s.folder.Close())
		}
	})
	return s.err
}
