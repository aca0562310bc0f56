//go:build !race

package overload

import (
	"context"
	"encoding/json"
	"flag"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"weir/pkg/app"
	"weir/pkg/lualib"
	"weir/pkg/settings"
	"weir/pkg/wire"
	"weir/services/standalone"
	"weir/test/clients"
	"weir/test/testkit"
)

var full = flag.Bool("full", false, "the whole overload, and not a twentieth of it")

// The clients run in processes of their own.
func TestMain(m *testing.M) { clients.Main(m) }

// scale gives the size of an overload.
func scale(n int) int {
	if *full {
		return n
	}
	return n / 20
}

// system is everything in one process, which is the test's.
type system struct {
	t    *testing.T
	s    *standalone.Standalone
	addr string
	run  standalone.RunFile
}

func start(t *testing.T, limits settings.Clients) *system {
	t.Helper()
	return startWith(t, standalone.Config{Clients: limits})
}

// startWith is start with settings of the test's own.
func startWith(t *testing.T, c standalone.Config) *system {
	t.Helper()
	settings.RaiseDescriptors(0)
	dir := t.TempDir()
	archive, err := txtar.ParseFile("app.txtar")
	if err != nil {
		t.Fatal(err)
	}
	testkit.WriteApp(t, dir, archive)
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	a, err := app.Load(dir, app.Options{Name: "overload", Library: lualib.Open(quiet)})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	c.App, c.Data, c.Log, c.Listen, c.Port = a, filepath.Join(dir, "data"), quiet, l, true
	s, err := standalone.Open(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() { _ = s.Run(ctx) })
	t.Cleanup(func() { cancel(); wg.Wait(); _ = s.Close() })
	text, err := os.ReadFile(filepath.Join(dir, "data", "run.json"))
	y := &system{t: t, s: s, addr: l.Addr().String()}
	if err == nil {
		err = json.Unmarshal(text, &y.run)
	}
	if err != nil {
		t.Fatal(err)
	}
	return y
}

// call calls a method; its first result goes to into, unless that is nil.
func (y *system) call(to, method string, into any, args ...any) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	data, err := json.Marshal(append([]any{}, args...))
	if err != nil {
		return err
	}
	data, err = y.s.Client().Call(ctx, wire.CallRequest{To: to, Method: method, Args: data})
	if err == nil && into != nil {
		err = json.Unmarshal(data, &[]any{into})
	}
	return err
}

// must is call where an error ends the test.
func (y *system) must(to, method string, into any, args ...any) {
	y.t.Helper()
	if err := y.call(to, method, into, args...); err != nil {
		y.t.Fatalf("%s:%s: %v", to, method, err)
	}
}

// others runs the well-behaved client for a while during an overload, or a quiet time, and reports its times.
func (y *system) others(what string, overload func()) clients.Probed {
	y.t.Helper()
	p := clients.Probe(y.t, y.addr)
	overload()
	var got clients.Probed
	p.End(&got)
	y.t.Logf("%s: others: %d requests, %v; frames: %v", what, got.Requests, got.Answers, got.Frames)
	if len(got.Failed) > 0 || got.Missed > 0 {
		y.t.Errorf("%s: others' requests failed: %v; events that they missed: %d", what, got.Failed, got.Missed)
	}
	return got
}

// quiet is how long others are watched.
func (y *system) quiet() clients.Probed {
	y.t.Helper()
	return y.others("nothing else", func() { <-time.After(scaleTime()) })
}

func scaleTime() time.Duration {
	if *full {
		return 10 * time.Second
	}
	return 2 * time.Second
}

// beside reports how many times longer others waited than in a quiet system.
func (y *system) beside(what string, unloaded, loaded clients.Probed) {
	y.t.Helper()
	y.t.Logf("%s: others' p99: %.1f times the unloaded one for an answer, %.1f times for a frame", what,
		loaded.Answers.P99/unloaded.Answers.P99, loaded.Frames.P99/unloaded.Frames.P99)
}
