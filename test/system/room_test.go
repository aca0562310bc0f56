package system

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"weir/services/host/hostd"
	"weir/test/testkit"
)

// Clients that send no end of their request, or read nothing of the answer, take the room of no other.
// spec: HTTP-3
func TestSlowClientsTakeNoRoom(t *testing.T) {
	slow(t, func(t *testing.T, s *testkit.System, _ func() func()) {
		for name, bytes := range map[string]string{
			"half a head":        "GET /wait HTTP/1.1\r\nHost: app.test\r\n",
			"half a body":        "POST /wait HTTP/1.1\r\nHost: app.test\r\nContent-Length: 10\r\n\r\nabc",
			"an answer not read": "GET /wait HTTP/1.1\r\nHost: app.test\r\n\r\n",
		} {
			var stop []func()
			for range 300 {
				conn, err := s.Listener().Dial(context.Background(), "", "")
				if err != nil {
					t.Fatal(err)
				}
				stop = append(stop, func() { _ = conn.Close() })
				_ = conn.SetDeadline(time.Now().Add(time.Hour))
				if _, err := io.WriteString(conn, bytes); err != nil {
					t.Fatal(err)
				}
			}
			synctest.Wait()
			if status, _, body, err := s.HTTP("GET", "/wait", ""); err != nil || status != 200 {
				t.Errorf("beside 300 times %s: %d %.100s %v", name, status, body, err)
			}
			for _, f := range stop {
				f()
			}
			time.Sleep(time.Second)
		}
	})
}

// Where there is no room a handshake is answered with 503 too, and one afterwards is taken; a frame of a socket that is
// there is handled, at the latest afterwards.
// spec: HTTP-3, CONN-2
func TestNoRoomForSockets(t *testing.T) {
	slow(t, func(t *testing.T, s *testkit.System, shut func() func()) {
		old := connect(t, s, "/slowframe?user=old")
		defer old.Close()
		wants(t, "the old one", old, `"open"`)
		open := shut()
		for i := range 1024 {
			go func() { _, _, _, _ = s.HTTP("GET", fmt.Sprintf("/wait?n=%d", i%4), "") }()
		}
		time.Sleep(time.Second)
		c, err := s.Connect("/forward?user=x")
		_ = old.Send("5")
		time.Sleep(time.Second)
		open()
		if err == nil || !strings.HasPrefix(err.Error(), "503") {
			t.Errorf("no room: %v %v", c, err)
		}
		wants(t, "the old one", old, "5")
		c = connect(t, s, "/forward?user=x")
		wants(t, "afterwards", c, `"open"`)
		c.Close()
	})
}

// Where there is no room for ten seconds a socket's handler is given up, and its socket is closed with 1013; its close
// handler waits for thirty.
// spec: CONN-8, CONN-12
func TestNoRoomForHandlers(t *testing.T) {
	slow(t, func(t *testing.T, s *testkit.System, shut func() func()) {
		c := connect(t, s, "/slowframe?user=late")
		wants(t, "the socket", c, `"open"`)
		open := shut()
		for i := range 1024 { // they take all the room for thirty seconds
			go func() { _, _, _, _ = s.HTTP("GET", fmt.Sprintf("/wait?n=%d", i%16), "") }()
		}
		time.Sleep(time.Second)
		_ = c.Send("5")
		time.Sleep(8500 * time.Millisecond)
		if frame, err := c.Next(); err == nil || err.Error() != "no frame" {
			t.Errorf("before ten seconds: %s %v", frame, err)
		}
		time.Sleep(time.Second)
		if frame, err := c.Next(); err == nil || !strings.Contains(err.Error(), "close 1013") {
			t.Errorf("after ten seconds: %s %v", frame, err)
		}
		time.Sleep(20 * time.Second)
		overflown(t, s, c, "late")
		open()
	})
}

// One object that is stuck has 512 handlers of a gateway wait for it. The others stand in line until room gets scarce:
// then they are refused, so that a quarter of the room is there for those that call others.
// spec: HTTP-3, OBJ-10
func TestStuckObjectLeavesRoom(t *testing.T) {
	slowWith(t, hostd.Limits{Mailbox: 1000}, func(t *testing.T, s *testkit.System, shut func() func()) {
		open := shut()
		var mu sync.Mutex
		var wg sync.WaitGroup
		ends := map[int]int{}
		for range 1024 {
			wg.Go(func() {
				status, _, _, err := s.HTTP("GET", "/wait", "")
				mu.Lock()
				defer mu.Unlock()
				if ends[status]++; err != nil {
					t.Error(err)
				}
			})
		}
		time.Sleep(1500 * time.Millisecond)
		c, err := s.Connect("/forward?user=x")
		if err != nil {
			t.Errorf("a handshake beside them: %v", err)
		} else {
			wants(t, "a socket beside them", c, `"open"`)
			c.Close()
		}
		time.Sleep(time.Second)
		mu.Lock()
		if n := ends[503]; n < 256 || n > 512 || len(ends) != 1 {
			t.Errorf("of 1,024 requests for the object these have ended: %v", ends)
		}
		mu.Unlock()
		open()
		wg.Wait()
		if ends[200] != 1024-ends[503] {
			t.Errorf("when it answers again: %v", ends)
		}
	})
}

// Sockets and requests that all wait for one stuck object slow no socket that does not.
// spec: CONN-8, OBJ-5, OBJ-11
func TestStuckHandlersSlowNobody(t *testing.T) {
	slow(t, func(t *testing.T, s *testkit.System, shut func() func()) {
		other := connect(t, s, "/slowframe?user=other")
		defer other.Close()
		wants(t, "the other", other, `"open"`)
		var sockets []*testkit.Socket
		for range 100 {
			sockets = append(sockets, connect(t, s, "/slowframe?user=stuck"))
		}
		open := shut()
		for _, c := range sockets {
			_ = c.Send("0")
		}
		synctest.Wait()
		_ = other.Send("5")
		frame, err := other.Next()
		status, _, _, httpErr := s.HTTP("GET", "/forward", "")
		open()
		if frame != "5" {
			t.Errorf("beside 100 handlers that wait for a stuck object: %q %v", frame, err)
		}
		if status == 503 || httpErr != nil {
			t.Errorf("a request beside them: %d %v", status, httpErr)
		}
		for _, c := range sockets {
			c.Close()
		}
	})
}

// An address with a port is its own host: a page of the same one connects, one of another port does not.
// spec: CONN-14
func TestOriginPorts(t *testing.T) {
	slow(t, func(t *testing.T, s *testkit.System, _ func() func()) {
		const handshake = "GET /forward?user=u HTTP/1.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\nHost: %s\r\nOrigin: %s\r\n\r\n"
		for _, c := range []struct {
			host, origin string
			want         bool
		}{
			{"app.test:8080", "http://app.test:8080", true},
			{"app.test:8080", "http://app.test:8081", false},
			{"app.test:8080", "http://app.test", false},
			{"127.0.0.1:8080", "http://127.0.0.1:8080", true},
			{"127.0.0.1:8080", "http://localhost:8080", false},
			{"[::1]:8080", "http://[::1]:8080", true},
			{"app.test", "http://app.test.", false},
			{"app.test", "http://xapp.test", false},
			{"app.test", "http://sub.app.test", false},
		} {
			got := exchange(t, s.Listener(), []string{"GET"}, fmt.Sprintf(handshake, c.host, c.origin))
			if (len(got) == 1 && got[0] == "101") != c.want || !c.want && (len(got) != 1 || !strings.HasPrefix(got[0], "403")) {
				t.Errorf("%s from %s: %q", c.host, c.origin, got)
			}
		}
	})
}
