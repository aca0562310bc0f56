//go:build !race

package overload

import (
	"strings"
	"testing"
	"time"

	"weir/pkg/settings"
	"weir/test/clients"
	"weir/test/testkit"
)

// maxDeaf is what a socket that never reads may cost the gateway: its queue holds what others' queues hold too, and
// ends with it.
const maxDeaf = 300 << 10

// A twentieth of the sockets never read. They are closed when their queues are full, the others get every event, and
// memory stays within its bound.
// spec: CONN-8, CONN-7
func TestDeafSockets(t *testing.T) {
	y := start(t, settings.Clients{})
	hearing, deaf := scale(9500), scale(500)
	c := clients.Open(t, y.addr, "/ws", hearing, "")
	c.Settle()
	sent := 0
	publish := func() {
		for range 20 {
			y.must("P/p", "big", nil)
		}
		c.Pace(5, hearing, func(n int) { y.must("P/p", "say", nil, n) })
		sent += 25
	}
	unloaded := y.others("nobody is deaf", func() {
		for end := time.Now().Add(scaleTime()); time.Now().Before(end); {
			publish()
		}
	})
	before, most := testkit.Settled(t), int64(0)
	clients.OpenDeaf(t, y.addr, "/loaded", deaf)
	for patience := time.Now().Add(time.Minute); y.watchers() != hearing+deaf; {
		if time.Now().After(patience) {
			t.Fatalf("%d sockets follow, and not %d", y.watchers(), hearing+deaf)
		}
	}
	sent = 0
	loaded := y.others("deaf sockets", func() {
		for deadline := time.Now().Add(3 * time.Minute); y.watchers() > hearing; publish() {
			if time.Now().After(deadline) {
				t.Fatalf("after %d events %d sockets are still there", sent, y.watchers())
			}
			if sent%100 == 0 { // seldom, since it costs others time
				most = max(most, testkit.Settled(t)-before)
			}
		}
	})
	t.Logf("%d sockets, %d of them deaf: these were closed after %d events, the others got all; %d KB for each deaf one at most",
		hearing+deaf, deaf, sent, most>>10/int64(deaf))
	y.beside("deaf sockets", unloaded, loaded)
	if most > int64(deaf)*maxDeaf+256<<20 {
		t.Errorf("the process grew by %d MB", most>>20)
	}
}

func (y *system) watchers() (n int) {
	y.t.Helper()
	y.must("P/p", "watchers", &n)
	return n
}

// Sockets that write frames as fast as they are taken are closed with a reason, whether by the limit that is set or by the
// bound of what may wait for a program; a socket whose program keeps up is left alone.
// spec: CONN-8
func TestFloodOfFrames(t *testing.T) {
	for name, c := range map[string]struct {
		limits settings.Clients
		frame  string
	}{
		"no limit set":           {settings.Clients{}, "1"},
		"large, no limit set":    {settings.Clients{}, `"` + strings.Repeat("x", 100<<10) + `"`},
		"100 frames a second":    {settings.Clients{Frames: 100}, "1"},
		"100,000 bytes a second": {settings.Clients{FrameBytes: 100_000}, `"` + strings.Repeat("x", 10<<10) + `"`},
	} {
		t.Run(name, func(t *testing.T) {
			y := start(t, c.limits)
			unloaded := y.quiet()
			before := testkit.Settled(t)
			var ends clients.Outcomes
			loaded := y.others("flooding frames", func() {
				w := clients.FloodFrames(t, y.addr, "/count", scale(200), c.frame)
				<-time.After(scaleTime())
				w.End(&ends)
			})
			grown := testkit.Settled(t) - before
			t.Logf("%d sockets flood: %v; the process grew by %d MB", scale(200), ends, grown>>20)
			y.beside("flooding frames", unloaded, loaded)
			for end := range ends {
				if code, reason, _ := strings.Cut(end, " "); end != "still open" && (code != "1008" && code != "1013" || reason == "") {
					t.Errorf("a flooding socket ended with %q", end)
				}
			}
			if c.limits != (settings.Clients{}) && len(ends) < 2 {
				t.Errorf("the limit closed no socket: %v", ends)
			}
			if grown > 256<<20 {
				t.Errorf("the process grew by %d MB", grown>>20)
			}
		})
	}
}

// Connections that stop in the middle of a request cost others nothing; full length only: they are closed in time.
// spec: HTTP-3
func TestHalfOpen(t *testing.T) {
	y := start(t, settings.Clients{})
	unloaded := y.quiet()
	before := testkit.Settled(t)
	n := scale(4000)
	halves := map[string]struct{ text, after string }{
		"nothing":     {"", ""},
		"half a line": {"GET /tou", ""},
		"half a head": {"GET /listen HTTP/1.1\r\nHost: x\r\nUpgrade: webso", ""},
		"half a body": {"POST /touch HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nhalf", ""},
		"half a frame": {"GET /count HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n" +
			"Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n\r\n", "\x81\xfe"},
	}
	work := map[string]*clients.Work{}
	loaded := y.others("half-open connections", func() {
		for name, half := range halves {
			work[name] = clients.HalfOpen(t, y.addr, half.text, half.after, n/len(halves))
		}
		<-time.After(scaleTime())
	})
	grown := testkit.Settled(t) - before
	t.Logf("%d connections stop in the middle: %d KB each", n, grown>>10/int64(n))
	y.beside("half-open connections", unloaded, loaded)
	if grown > int64(n)*64<<10+64<<20 {
		t.Errorf("the process grew by %d MB", grown>>20)
	}
	if *full {
		<-time.After(80 * time.Second) // every one of them is past its time
	}
	for name, w := range work {
		var ends clients.Outcomes
		w.End(&ends)
		t.Logf("%s: %v", name, ends)
		for end := range ends {
			if *full && !strings.HasSuffix(end, "(closed)") {
				t.Errorf("%s: after its time the connection is: %s", name, end)
			}
		}
	}
}
