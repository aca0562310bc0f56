package centrifuge

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime/debug"
	"testing"
	"time"

	"github.com/centrifugal/centrifuge"
	"golang.org/x/sys/unix"

	"weir/test/clients"
)

// The clients run in a process of their own.
func TestMain(m *testing.M) { clients.Main(m) }

// start serves a node whose connections are all subscribed to one channel, with JSON frames and the library's defaults.
func start(b *testing.B) (*centrifuge.Node, string) {
	var r unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &r); err == nil {
		r.Cur = r.Max
		_ = unix.Setrlimit(unix.RLIMIT_NOFILE, &r)
	}
	node, err := centrifuge.New(centrifuge.Config{})
	if err != nil {
		b.Fatal(err)
	}
	node.OnConnecting(func(context.Context, centrifuge.ConnectEvent) (centrifuge.ConnectReply, error) {
		return centrifuge.ConnectReply{Credentials: &centrifuge.Credentials{UserID: "u"},
			Subscriptions: map[string]centrifuge.SubscribeOptions{"e": {}}}, nil
	})
	if err := node.Run(); err != nil {
		b.Fatal(err)
	}
	ws := centrifuge.NewWebsocketHandler(node, centrifuge.WebsocketConfig{CheckOrigin: func(*http.Request) bool { return true },
		PingPongConfig: centrifuge.PingPongConfig{PingInterval: time.Hour, PongTimeout: time.Minute}})
	srv := httptest.NewServer(ws)
	b.Cleanup(func() {
		_ = node.Shutdown(context.Background())
		srv.Close()
	})
	return node, srv.Listener.Addr().String()
}

const hello = `{"id":1,"connect":{}}`

// BenchmarkSockets: frames/s to 2,000 sockets, 32 events on their way at most.
func BenchmarkSockets(b *testing.B) {
	const sockets = 2000
	node, addr := start(b)
	c := clients.Open(b, addr, "/", sockets, hello)
	publish := func(n int) {
		text := fmt.Sprintf(`{"type":"event","topic":"e","from":{"id":"P/p","class":"P","name":"p"},"data":{"n":%d,"text":"#an event of a usual size, some hundred bytes"}}`, n)
		if _, err := node.Publish("e", []byte(text)); err != nil {
			b.Fatal(err)
		}
	}
	c.Settle()
	b.ResetTimer()
	c.Pace(b.N, sockets, publish)
	b.ReportMetric(float64(b.N*sockets)/b.Elapsed().Seconds(), "frames/s")
}

// BenchmarkIdleSockets: memory of an idle socket at 10,000.
func BenchmarkIdleSockets(b *testing.B) {
	const n = 10_000
	_, addr := start(b)
	before := resident(b)
	clients.Open(b, addr, "/", n, hello).Settle()
	each := float64(resident(b)-before) / n
	for b.Loop() {
	}
	b.ReportMetric(each, "B/socket")
}

func resident(b *testing.B) int64 {
	debug.FreeOSMemory()
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		b.Fatal(err)
	}
	var size, pages int64
	if _, err := fmt.Sscan(string(text), &size, &pages); err != nil {
		b.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}
