package system

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"

	"weir/test/testkit"
)

// A client that does not read fills the outgoing queue of 1 MiB, forwarded events too; then it is closed, and nobody
// else has waited for it.
// spec: CONN-8, CONN-12
func TestOutgoingOverflows(t *testing.T) {
	slow(t, func(t *testing.T, s *testkit.System, _ func() func()) {
		for _, path := range []string{"/forward", "/slow"} {
			user := path[1:]
			reads := connect(t, s, "/forward?user=reads"+user)
			wants(t, path, reads, `"open"`)
			ws := dialDeaf(t, s.Listener(), path+"?user="+user)
			time.Sleep(time.Second)
			for i := range 10 {
				start := time.Now()
				s.MustCall("P/p", "big", "200000")
				if frame, err := reads.Next(); err != nil || len(frame) < 200000 {
					t.Errorf("%s: event %d of the one who reads: %.100s %v", path, i, frame, err)
				}
				if d := time.Since(start); d > time.Second { // of virtual time
					t.Errorf("%s: event %d waited %v", path, i, d)
				}
			}
			time.Sleep(20 * time.Second)
			if got := s.MustCall("P/p", "watchers"); got != "1" {
				t.Errorf("%s: %s edges, want that of the one who reads", path, got)
			}
			if got := s.MustCall("Log/"+user, "all"); got != `["overflow"]` {
				t.Errorf("%s: close handlers: %s", path, got)
			}
			_ = ws.Close()
			reads.Close()
		}
	})
}

// Small frames fill it by their number: 4,096 may wait beside the one that is being written.
// spec: CONN-8
func TestOutgoingOverflowsByNumber(t *testing.T) {
	slow(t, func(t *testing.T, s *testkit.System, _ func() func()) {
		ws := dialDeaf(t, s.Listener(), "/forward?user=many") // "open" is being written from now on
		defer ws.Close()
		time.Sleep(time.Second)
		s.MustCall("P/p", "burst", "1", "4096") // 400 KB
		time.Sleep(time.Second)
		if got := s.MustCall("Log/many", "all"); got != "[]" || s.MustCall("P/p", "watchers") != "1" {
			t.Errorf("with 4,096 frames that wait: %s", got)
		}
		s.MustCall("P/p", "burst", "1", "1")
		time.Sleep(20 * time.Second)
		if got := s.MustCall("Log/many", "all"); got != `["overflow"]` || s.MustCall("P/p", "watchers") != "0" {
			t.Errorf("with one more: %s", got)
		}
	})
}

// A frame that a peer does not take within ten seconds ends its socket, as if the connection had broken.
// spec: CONN-8, CONN-12
func TestOutgoingIsNotTaken(t *testing.T) {
	slow(t, func(t *testing.T, s *testkit.System, _ func() func()) {
		ws := dialDeaf(t, s.Listener(), "/forward?user=deaf") // it does not take "open"
		defer ws.Close()
		time.Sleep(9 * time.Second)
		if got := s.MustCall("P/p", "watchers"); got != "1" {
			t.Errorf("before ten seconds: %s edges", got)
		}
		time.Sleep(2 * time.Second)
		if got := s.MustCall("Log/deaf", "all"); got != `["peer"]` || s.MustCall("P/p", "watchers") != "0" {
			t.Errorf("after ten seconds: %s", got)
		}
	})
}

// dialDeaf opens a websocket that reads nothing.
func dialDeaf(t *testing.T, l *testkit.Pipe, path string) *websocket.Conn {
	t.Helper()
	d := websocket.Dialer{NetDialContext: l.Dial, HandshakeTimeout: 10 * time.Second}
	ws, resp, err := d.Dial("ws://app.test"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return ws
}

// One that reads late gets what was queued for it, whole and in order, and then the close that tells it to reconnect.
// spec: CONN-8
func TestOutgoingTellsLate(t *testing.T) {
	slow(t, func(t *testing.T, s *testkit.System, _ func() func()) {
		ws := dialDeaf(t, s.Listener(), "/slow?user=late")
		time.Sleep(time.Second)
		for i := range 10 {
			s.MustCall("P/p", "big", fmt.Sprint(200000+i))
		}
		synctest.Wait()
		_ = ws.SetReadDeadline(time.Now().Add(30 * time.Second))
		for i := 0; ; i++ {
			_, data, err := ws.ReadMessage()
			if err != nil {
				if !websocket.IsCloseError(err, 1013) {
					t.Errorf("after %d frames: %v", i, err)
				}
				break
			}
			if len(data) != 200000+i+2 {
				t.Errorf("frame %d: %d bytes", i, len(data))
			}
		}
		_ = ws.Close()
	})
}
