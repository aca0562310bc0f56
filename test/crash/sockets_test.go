package crash

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"golang.org/x/tools/txtar"

	"weir/pkg/bus"
	"weir/test/testkit"
)

const socketsApp = `
-- main.lua --
local Source = object "Source" {
    publishes = { tick = "public" },
    bump = function(state, key) state:publish("tick", key) end,
    watchers = function(state) return #state:followers() end,
}
local User = object "User" {}
local Ws = connection "Ws" {
    open = function(conn) conn:follow(Source("s"), "tick") conn:send(0) end,
    event = function(conn, event) conn:send(event.data) end,
}
on "fetch" (function(request) return request:upgrade(Ws, nil, User("u")) end)
`

// listener is a socket that keeps what it got.
type listener struct {
	ws   *websocket.Conn
	keys chan int
	end  chan error
}

func listen(t *testing.T, addr string) *listener {
	t.Helper()
	ws, resp, err := websocket.DefaultDialer.Dial("ws://"+addr+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	t.Cleanup(func() { ws.Close() })
	l := &listener{ws, make(chan int, 10_000), make(chan error, 1)}
	go func() {
		for {
			_, data, err := ws.ReadMessage()
			if err != nil {
				l.end <- err
				return
			}
			var key int
			_ = json.Unmarshal(data, &key)
			l.keys <- key
		}
	}()
	if key := <-l.keys; key != 0 {
		t.Fatalf("%d before open's frame", key)
	}
	return l
}

// bump publishes with a growing key, until one has come to the socket, which gets each at most once and in order.
func (l *listener) bump(t *testing.T, c *bus.Client, what string, key, last *int) {
	t.Helper()
	ctx, cancel := within(40 * time.Second)
	defer cancel()
	for {
		*key++
		if _, err := call(ctx, c, "Source/s", "bump", *key); err != nil {
			if ctx.Err() != nil {
				t.Fatalf("%s: no call succeeds: %v", what, err)
			}
			continue
		}
		patience := time.After(time.Second)
		for waiting := true; waiting; {
			select {
			case got := <-l.keys:
				if got <= *last {
					t.Fatalf("%s: %d came after %d", what, got, *last)
				}
				if *last = got; got == *key {
					return
				}
			case err := <-l.end:
				t.Fatalf("%s: the socket ended: %v", what, err)
			case <-patience:
				waiting = false
			case <-ctx.Done():
				t.Fatalf("%s: nothing comes any more", what)
			}
		}
	}
}

// A socket outlives the loss of the host, the routers and NATS: it may miss events, but gets none twice or out of order,
// and those that come later. A gateway that stops tells its own sockets, and nobody else's.
// spec: CONN-6, CONN-13, OPS-1, OPS-4
func TestSocketsOutlive(t *testing.T) {
	c := newCluster(t, "")
	testkit.WriteApp(t, filepath.Join(c.dir, "app"), txtar.Parse([]byte(socketsApp)))
	one, two := testkit.FreeAddr(t), testkit.FreeAddr(t)
	for _, name := range []string{"nats", "host", "router"} {
		c.start(name)
	}
	c.start("gateway", "--listen", one)
	c.start("gateway 2", "--listen", two)
	c.ready("host", "router", "gateway", "gateway 2")
	client := c.client()
	a, b := listen(t, one), listen(t, two)
	key, lastA, lastB := 0, 0, 0
	a.bump(t, client, "at first", &key, &lastA)
	for _, step := range []struct {
		what string
		do   func()
	}{
		{"host killed", func() { c.kill("host"); c.start("host") }},
		{"router killed", func() { c.kill("router"); c.start("router") }},
		{"host stopped", func() { c.stop("host"); c.start("host") }},
		{"NATS killed", func() { c.kill("nats"); c.start("nats") }},
		{"NATS killed and emptied", func() {
			c.kill("nats")
			if err := os.RemoveAll(filepath.Join(c.dir, "store")); err != nil {
				t.Fatal(err)
			}
			c.start("nats")
		}},
		{"host and NATS killed", func() { c.kill("host"); c.kill("nats"); c.start("host"); c.start("nats") }},
	} {
		step.do()
		c.ready("host", "router", "gateway", "gateway 2")
		a.bump(t, client, step.what, &key, &lastA)
		b.bump(t, client, step.what+", the other gateway", &key, &lastB)
	}
	c.stop("gateway 2")
	var end *websocket.CloseError
	if err := <-b.end; !errors.As(err, &end) || end.Code != 1012 {
		t.Errorf("the socket of the gateway that stopped: %v", err)
	}
	a.bump(t, client, "the other gateway stopped", &key, &lastA)
	eventually(t, func() string { // a gateway that stops has told the publisher, or is found silent
		n, problem := get[int](client, "Source/s", "watchers")
		if problem == "" && n != 1 {
			return fmt.Sprintf("%d followers after the stop", n)
		}
		return problem
	})
}
