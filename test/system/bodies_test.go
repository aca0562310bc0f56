package system

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"weir/services/host/hostd"
	"weir/test/testkit"
)

const bodiesApp = `
-- main.lua --
on "fetch" (function(r)
    if r.path == "/large" then return { body = ("x"):rep(8 * 1024 * 1024) } end
    return { body = tostring(#r.body) }
end)
`

// upload is a request whose body has not ended yet.
type upload struct {
	conn net.Conn
	in   *bufio.Reader
}

func uploads(t *testing.T, s *testkit.System, size int, body string) upload {
	t.Helper()
	conn, err := s.Listener().Dial(context.Background(), "", "")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		_, _ = fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: app.test\r\nContent-Length: %d\r\n\r\n%s", size, body)
	}()
	return upload{conn, bufio.NewReader(conn)}
}

// answer gives the status, the body, and Retry-After.
func (u upload) answer() string {
	defer u.conn.Close()
	resp, err := http.ReadResponse(u.in, nil)
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	return strings.TrimSpace(fmt.Sprintf("%d %.20s %s", resp.StatusCode, body, resp.Header.Get("Retry-After")))
}

// A gateway holds 128 MiB of large bodies at once: who comes then is told so after 5 s, while small ones go on, and there
// is room again when the others end.
// spec: HTTP-3
func TestRoomForBodies(t *testing.T) {
	testkit.Bubble(t, txtar.Parse([]byte(bodiesApp)), hostd.Limits{}, func(t *testing.T, s *testkit.System) {
		const size = 10 << 20
		most := strings.Repeat("x", size-1)
		var all []upload
		for range 12 {
			all = append(all, uploads(t, s, size, most))
		}
		time.Sleep(time.Second)
		began := time.Now()
		large := uploads(t, s, size, most)
		time.Sleep(time.Second)
		if got := uploads(t, s, 65536, most[:65536]).answer(); got != "200 65536" || time.Since(began) != time.Second {
			t.Errorf("a small body while a large one waits: %s after %v", got, time.Since(began))
		}
		if got := large.answer(); !strings.HasPrefix(got, "503 ") || !strings.HasSuffix(got, " 1") || time.Since(began) != 5*time.Second {
			t.Errorf("a large body without room: %s after %v", got, time.Since(began))
		}
		var wg sync.WaitGroup
		for _, u := range all {
			wg.Go(func() {
				_, _ = io.WriteString(u.conn, "x")
				if got := u.answer(); got != fmt.Sprint("200 ", size) {
					t.Errorf("one of those that took the room: %s", got)
				}
			})
		}
		wg.Wait()
		if got := uploads(t, s, size, most+"x").answer(); got != fmt.Sprint("200 ", size) {
			t.Errorf("when there is room again: %s", got)
		}
	})
}

// A client that does not read its answer is left after 20 s; one that reads slowly gets all of it.
// spec: HTTP-3
func TestUnreadAnswer(t *testing.T) {
	testkit.Bubble(t, txtar.Parse([]byte(bodiesApp)), hostd.Limits{}, func(t *testing.T, s *testkit.System) {
		ask := func() net.Conn {
			conn, err := s.Listener().Dial(context.Background(), "", "")
			if err != nil {
				t.Fatal(err)
			}
			go func() {
				_, _ = io.WriteString(conn, "GET /large HTTP/1.1\r\nHost: app.test\r\nConnection: close\r\n\r\n")
			}()
			return conn
		}
		deaf, slow := ask(), ask()
		defer deaf.Close()
		defer slow.Close()
		total, piece := 0, make([]byte, 64<<10)
		for {
			n, err := io.ReadFull(slow, piece)
			if total += n; err != nil {
				break
			}
			time.Sleep(10 * time.Second)
		}
		if total < 8<<20 {
			t.Errorf("a slow client got %d bytes", total)
		}
		if data, err := io.ReadAll(deaf); err != nil || len(data) >= 8<<20 {
			t.Errorf("a client that did not read for minutes got %d bytes, %v", len(data), err)
		}
	})
}
