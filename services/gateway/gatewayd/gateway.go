package gatewayd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"
	"github.com/nats-io/nats.go"

	"weir/pkg/app"
	"weir/pkg/bus"
	"weir/pkg/objectid"
	"weir/pkg/obs"
	"weir/pkg/settings"
	"weir/services/gateway/internal/fanout"
	"weir/services/gateway/internal/fetch"
	"weir/services/gateway/internal/pool"
	"weir/services/gateway/internal/socket"
	"weir/services/gateway/internal/web"
)

// Config is what a gateway works with.
type Config struct {
	App     *app.App
	NATS    *nats.Conn // the gateway's own; Close leaves it open
	Log     *slog.Logger
	Origins []string     // allowed beside the request's own host, as scheme://host[:port]
	Proxies []string     // addresses or networks whose X-Forwarded-For is believed
	VMs     int          // handlers that run at once; default 64
	Metrics *obs.Metrics // nil: none
	Explain bool         // show failures to browsers: for development
	Clients settings.Clients
}

// Gateway is a running gateway service.
type Gateway struct {
	c        Config
	pool     *pool.Pool
	fanout   *fanout.Fanout
	files    *web.Files
	fetch    *fetch.Handler
	server   *http.Server
	caller   *caller
	buckets  buckets
	upgrader websocket.Upgrader
	once     sync.Once

	remote    func(*http.Request) string
	addresses addresses

	mu      sync.Mutex // guards what follows
	sockets map[*socket.Socket]bool
	closing bool
	running sync.WaitGroup // of sockets
}

// Open makes a gateway ready to serve.
func Open(_ context.Context, c Config) (*Gateway, error) {
	if c.VMs == 0 {
		c.VMs = 64
	}
	files, err := web.Open(filepath.Join(c.App.Dir, "web"))
	if err != nil {
		return nil, fmt.Errorf("gatewayd: %w", err)
	}
	for _, o := range c.Origins {
		if u, err := url.Parse(o); o != "*" && (err != nil || u.Host == "" || !strings.EqualFold(o, u.Scheme+"://"+u.Host)) {
			return nil, fmt.Errorf("gatewayd: the allowed origin %q must be scheme://host or scheme://host:port, as in https://app.example, or * for all", o)
		}
	}
	trusted, err := parseProxies(c.Proxies)
	if err != nil {
		return nil, fmt.Errorf("gatewayd: %w", err)
	}
	g := &Gateway{c: c, files: files, sockets: map[*socket.Socket]bool{}, pool: pool.New(c.App, c.VMs, c.Log)}
	client := bus.NewClient(c.NATS, c.App.Name)
	kv, err := bus.NewKV(client, c.App.Name)
	if err != nil {
		return nil, fmt.Errorf("gatewayd: %w", err)
	}
	g.buckets = buckets{kv, g.pool}
	g.fanout, g.caller = fanout.New(client, c.Log), &caller{client: client, pool: g.pool, lines: map[objectid.ID]*line{}}
	g.fetch = fetch.New(fetch.Config{App: c.App, Pool: g.pool, Caller: g.caller, Buckets: g.buckets, Log: c.Log, Remote: trusted.remote, Explain: c.Explain, Upgrade: g.upgrade})
	g.upgrader = websocket.Upgrader{ReadBufferSize: 2048, WriteBufferPool: &sync.Pool{}, CheckOrigin: g.allowed,
		Error: func(w http.ResponseWriter, r *http.Request, status int, reason error) {
			text := reason.Error()
			if status == http.StatusForbidden {
				text = fmt.Sprintf("pages of %q may not open websockets here: --origins (WEIR_ORIGINS) lets them", r.Header.Get("Origin"))
				c.Log.Info("a websocket was refused: "+text, "remote", trusted.remote(r))
			}
			http.Error(w, text, status)
		}}
	g.remote = trusted.remote
	g.server = &http.Server{Handler: g, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 120 * time.Second, MaxHeaderBytes: 64 << 10,
		ErrorLog: slog.NewLogLogger(c.Log.Handler(), slog.LevelDebug)}
	if c.Metrics != nil {
		c.Metrics.Gauge(c.App.Name, "gateway", "weir_sockets", "Open websockets.", func() float64 {
			g.mu.Lock()
			defer g.mu.Unlock()
			return float64(len(g.sockets))
		})
	}
	return g, nil
}

// Run serves until ctx ends, and says goodbye to sockets.
func (g *Gateway) Run(ctx context.Context, l net.Listener) error {
	var running sync.WaitGroup
	defer running.Wait()
	alive, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	running.Go(func() { g.fanout.Present(alive) })
	ended := make(chan error, 1)
	go func() { ended <- g.Serve(l) }()
	select {
	case <-ctx.Done():
		return errors.Join(g.Close(), <-ended)
	case err := <-ended:
		return errors.Join(fmt.Errorf("gatewayd: cannot serve: %w", err), g.Close())
	}
}

// Serve takes connections until Close. It closes the listener.
func (g *Gateway) Serve(l net.Listener) error {
	if err := g.server.Serve(deadlineListener{l}); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// ServeHTTP serves a file of web/, or else asks the app.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// A length may have stood beside the chunks, or chunks beside the length of an old version. Who believed the other one
	// sees other requests after this one: none is taken (RFC 9112, 6.1).
	if n := r.ContentLength; n < 0 || n > 0 && !r.ProtoAtLeast(1, 1) {
		w.Header().Set("Connection", "close")
	}
	if !websocket.IsWebSocketUpgrade(r) && g.files.Serve(w, r) {
		return
	}
	g.fetch.ServeHTTP(w, r)
}

// upgrade takes a websocket over. The HTTP handler returns at once: reading is a goroutine of the socket's own, which
// holds none of the request's memory.
func (g *Gateway) upgrade(w http.ResponseWriter, r *http.Request, u *fetch.Upgrade) {
	g.mu.Lock()
	if g.closing {
		g.mu.Unlock()
		w.Header().Set("Retry-After", "1")
		http.Error(w, "the gateway stops", http.StatusServiceUnavailable)
		return
	}
	g.running.Add(1)
	g.mu.Unlock()
	leave, ok := g.addresses.enter(g.remote(r), g.c.Clients.Connections)
	if !ok {
		g.running.Done()
		w.Header().Set("Retry-After", "10")
		http.Error(w, "too many connections from this address", http.StatusTooManyRequests)
		return
	}
	ws, err := socket.Upgrade(&g.upgrader, w, r)
	if err != nil {
		leave()
		g.running.Done()
		g.c.Log.Debug("a websocket was refused", "error", err)
		return
	}
	s := socket.New(socket.Config{App: g.c.App, Pool: g.pool, Fanout: g.fanout, Caller: g.caller, Buckets: g.buckets, Log: g.c.Log, Explain: g.c.Explain, Frames: g.c.Clients.Frames, FrameBytes: g.c.Clients.FrameBytes, Overflowed: g.overflowed},
		u.Program, u.Identity, u.Seed, ws, func(s *socket.Socket) { leave(); g.gone(s) })
	g.mu.Lock()
	g.sockets[s] = true
	if g.closing {
		s.Stop()
	}
	g.mu.Unlock()
	go s.Run()
}

func (g *Gateway) overflowed() {
	if g.c.Metrics != nil {
		g.c.Metrics.Overflowed()
	}
}

func (g *Gateway) gone(s *socket.Socket) {
	g.mu.Lock()
	delete(g.sockets, s)
	g.mu.Unlock()
	g.running.Done()
}

// allowed says whether a browser's page may connect: one of the same host, or of an allowed origin. Without an Origin
// it is no browser's page; with two, or an empty one, it is nobody's that can be believed.
func (g *Gateway) allowed(r *http.Request) bool {
	lines, ok := r.Header["Origin"]
	if !ok {
		return true
	}
	origin := lines[0]
	u, err := url.Parse(origin)
	if err != nil || len(lines) > 1 || origin == "" {
		return false
	}
	if u.Host != "" && strings.EqualFold(u.Host, r.Host) {
		return true
	}
	for _, o := range g.c.Origins {
		if o == "*" || strings.EqualFold(o, origin) {
			return true
		}
	}
	return false
}

// goodbyePace is how many sockets a second are told to connect again when the gateway stops, so that they do not all
// come to the next one at once; goodbyeMost bounds the time that takes.
const (
	goodbyePace = 500
	goodbyeMost = 10 * time.Second
)

// goodbye tells every socket to connect again, spread over time.
func (g *Gateway) goodbye() {
	g.mu.Lock()
	g.closing = true
	all := make([]*socket.Socket, 0, len(g.sockets))
	for s := range g.sockets {
		all = append(all, s)
	}
	g.mu.Unlock()
	between := min(time.Second/goodbyePace, goodbyeMost/time.Duration(max(1, len(all))))
	next := time.NewTicker(max(between, time.Microsecond))
	defer next.Stop()
	for _, s := range all {
		s.Stop()
		<-next.C
	}
}

// Close ends sockets with the word to connect again, waits a while for running requests, and stops. It may be called
// again.
func (g *Gateway) Close() error {
	var err error
	g.once.Do(func() {
		g.goodbye()
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		err = g.server.Shutdown(ctx)
		if errors.Is(err, context.DeadlineExceeded) {
			err = g.server.Close()
		}
		g.running.Wait()
		g.fanout.Close()
		g.pool.Close()
		err = errors.Join(err, g.files.Close())
	})
	return err
}
