package testkit

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/tools/txtar"

	"weir/pkg/app"
	"weir/pkg/lualib"
	"weir/pkg/objectid"
	"weir/pkg/settings"
	"weir/pkg/wire"
	"weir/services/host/hostd"
	"weir/services/standalone"
)

// System is a standalone Weir that runs an app.
type System struct {
	t      testing.TB
	dir    string
	data   string
	limits hostd.Limits
	listen *Pipe
	// Barrier is given to systems that are started from now on.
	Barrier func(id objectid.ID, sync func() error) error
	// Clients likewise.
	Clients settings.Clients
	App     *app.App
	*standalone.Standalone
	cancel context.CancelFunc
	done   sync.WaitGroup
	Log    *slog.Logger
}

// Bubble runs test with a system in virtual time: its time stands still but when everything waits. The app is the
// files of a txtar archive.
func Bubble(t *testing.T, files *txtar.Archive, limits hostd.Limits, test func(t *testing.T, s *System)) {
	t.Helper()
	dir := t.TempDir()
	EmptyPools()
	synctest.Test(t, func(t *testing.T) {
		s := Start(t, dir, files, limits)
		defer s.Stop()
		test(t, s)
	})
}

// EmptyPools makes a bubble possible: a timer that nats.go has pooled in another one is fatal in it. Two collections empty
// every sync.Pool.
func EmptyPools() {
	runtime.GC()
	runtime.GC()
}

// WriteApp writes an app's files below dir.
func WriteApp(t testing.TB, dir string, files *txtar.Archive) {
	t.Helper()
	for _, f := range files.Files {
		path := filepath.Join(dir, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, f.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// Start starts a system below dir.
func Start(t testing.TB, dir string, files *txtar.Archive, limits hostd.Limits) *System {
	t.Helper()
	s := &System{t: t, dir: filepath.Join(dir, "app"), data: filepath.Join(dir, "data"), limits: limits, Log: Logger(t)}
	WriteApp(t, s.dir, files)
	a, err := app.Load(s.dir, app.Options{Name: "app", Library: lualib.Open(s.Log), Secrets: func(name string) (string, bool) { return "secret of " + name + " 0123456789abcdef", true }})
	if err != nil {
		t.Fatal(err)
	}
	s.App = a
	s.start()
	return s
}

// Logger writes to the test's log, at the level that WEIR_TEST_LOG names.
func Logger(t testing.TB) *slog.Logger {
	level := slog.LevelError + 10
	if text := os.Getenv("WEIR_TEST_LOG"); text != "" {
		_ = level.UnmarshalText([]byte(text))
	}
	return slog.New(slog.NewTextHandler(testLog{t}, &slog.HandlerOptions{Level: level}))
}

type testLog struct{ t testing.TB }

func (l testLog) Write(p []byte) (int, error) {
	l.t.Log(strings.TrimRight(string(p), "\n"))
	return len(p), nil
}

func (s *System) start() {
	s.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	s.listen = NewPipe()
	sys, err := standalone.Open(ctx, standalone.Config{App: s.App, Listen: s.listen, Data: s.data, Log: s.Log, Limits: s.limits, Barrier: s.Barrier, Clients: s.Clients, Quiet: func() { time.Sleep(time.Second) }})
	if err != nil {
		cancel()
		s.t.Fatal(err)
	}
	s.Standalone, s.cancel = sys, cancel
	s.done.Go(func() { _ = sys.Run(ctx) })
}

// Stop stops the system as SIGTERM does.
func (s *System) Stop() {
	s.t.Helper()
	s.cancel()
	s.done.Wait()
	if err := s.Standalone.Close(); err != nil {
		s.t.Error(err)
	}
}

// Restart stops it and starts it again.
func (s *System) Restart() {
	s.t.Helper()
	s.Stop()
	s.start()
}

// Call calls a method with JSON arguments, and gives the JSON of each result.
func (s *System) Call(id, method string, args ...string) ([]string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	data, err := s.Client().Call(ctx, wire.CallRequest{To: id, Method: method, Args: json.RawMessage("[" + strings.Join(args, ",") + "]")})
	if err != nil {
		return nil, err
	}
	var results []json.RawMessage
	if err := json.Unmarshal(data, &results); err != nil {
		return nil, fmt.Errorf("results %s: %w", data, err)
	}
	out := make([]string, len(results))
	for i, r := range results {
		out[i] = string(r)
	}
	return out, nil
}

// MustCall is Call for what must succeed; it gives the first result.
func (s *System) MustCall(id, method string, args ...string) string {
	s.t.Helper()
	out, err := s.Call(id, method, args...)
	if err != nil {
		s.t.Fatalf("%s:%s: %v", id, method, err)
	}
	if len(out) == 0 {
		return ""
	}
	return out[0]
}

// Edges gives what weir edges shows.
func (s *System) Edges(id string) wire.EdgesReply {
	s.t.Helper()
	var e wire.EdgesReply
	if err := json.Unmarshal([]byte(s.MustCall(id, hostd.MethodEdges)), &e); err != nil {
		s.t.Fatal(err)
	}
	return e
}

// Listener is where the system's gateway serves.
func (s *System) Listener() *Pipe { return s.listen }
