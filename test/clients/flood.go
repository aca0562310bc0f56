package clients

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"

	"github.com/gorilla/websocket"
	"github.com/nats-io/nats.go"

	"weir/pkg/bus"
	"weir/pkg/wire"
)

// Outcomes counts how things ended.
type Outcomes map[string]int

// tally is Outcomes that many goroutines count in.
type tally struct {
	mu sync.Mutex
	n  Outcomes
}

func (t *tally) add(outcome string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.n[outcome]++
}

// FloodFrames begins n websockets to ws://addr+path that write one frame after the other as fast as the server takes them
// and connect again when it has closed them. Outcomes are close codes with their reasons.
func FloodFrames(t testing.TB, addr, path string, n int, text string) *Work {
	t.Helper()
	return begin(t, order{Job: "flood frames", Addr: addr, Path: path, Count: n, Hello: text})
}

func floodFrames(o order) error {
	out := tally{n: Outcomes{}}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	end := ended()
	for range o.Count {
		wg.Go(func() {
			for ctx.Err() == nil {
				out.add(floodSocket(ctx, o))
			}
		})
	}
	<-end
	cancel()
	wg.Wait()
	return answer(out.n)
}

// floodSocket gives the word with which the server ended the socket; "still open" if it was our end first.
func floodSocket(ctx context.Context, o order) string {
	ws, resp, err := websocket.DefaultDialer.DialContext(ctx, "ws://"+o.Addr+o.Path, nil)
	if err != nil {
		if ctx.Err() != nil {
			return "still open"
		}
		return "no handshake: " + err.Error()
	}
	_ = resp.Body.Close()
	defer func() { _ = ws.Close() }()
	defer context.AfterFunc(ctx, func() { _ = ws.Close() })()
	said := make(chan string, 1)
	go func() {
		for {
			if _, _, err := ws.ReadMessage(); err != nil {
				var closed *websocket.CloseError
				if errors.As(err, &closed) {
					said <- fmt.Sprintf("%d %s", closed.Code, closed.Text)
				} else {
					said <- "cut"
				}
				return
			}
		}
	}()
	for ws.WriteMessage(websocket.TextMessage, []byte(o.Hello)) == nil {
	}
	word := <-said
	if ctx.Err() != nil {
		return "still open"
	}
	return word
}

// FloodCalls begins n calls of an object's method at once, over NATS and with five seconds each. It ends by itself.
// Outcomes are "done" and codes.
func FloodCalls(t testing.TB, natsURL, token, app, object, method string, n int) *Work {
	t.Helper()
	return begin(t, order{Job: "flood calls", NATS: natsURL, Token: token, App: app, Addr: object, Path: method, Count: n})
}

func floodCalls(o order) error {
	nc, err := nats.Connect(o.NATS, nats.Token(o.Token), nats.Timeout(30*time.Second))
	if err != nil {
		return err
	}
	defer nc.Close()
	client := bus.NewClient(nc, o.App)
	out := tally{n: Outcomes{}}
	var wg sync.WaitGroup
	finding, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if _, err := client.Owner(finding); err != nil {
		return err
	}
	ended()
	for n := range o.Count {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			defer cancel()
			if _, err := client.Call(ctx, wire.CallRequest{To: o.Addr, Method: o.Path, Args: json.RawMessage(fmt.Sprintf("[%d]", n))}); err != nil {
				out.add(string(wire.AsError(err).Code))
				return
			}
			out.add("done")
		})
	}
	wg.Wait()
	return answer(out.n)
}

// FloodRequests begins n clients that ask http://addr+path again and again. {n} in the path is a number that rises.
// Outcomes are status and body.
func FloodRequests(t testing.TB, addr, path string, n int) *Work {
	t.Helper()
	return begin(t, order{Job: "flood requests", Addr: addr, Path: path, Count: n})
}

func floodRequests(o order) error {
	out := tally{n: Outcomes{}}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: o.Count}}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	end := ended()
	for i := range o.Count {
		wg.Go(func() {
			for n := i; ctx.Err() == nil; n += o.Count {
				out.add(get(ctx, client, "http://"+o.Addr+strings.ReplaceAll(o.Path, "{n}", fmt.Sprint(n))))
			}
		})
	}
	<-end
	cancel()
	wg.Wait()
	return answer(out.n)
}

func get(ctx context.Context, client *http.Client, address string) string {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err.Error()
	}
	resp, err := client.Do(req)
	if err == nil {
		defer resp.Body.Close()
		var body []byte
		if body, err = io.ReadAll(resp.Body); err == nil {
			return fmt.Sprintf("%d %s", resp.StatusCode, strings.TrimSpace(string(body)))
		}
	}
	if ctx.Err() != nil {
		return "our own end"
	}
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	return err.Error()
}

// HalfOpen begins n connections to addr that send text, which is not all of a request, and then nothing. With after, text is
// all of one, and after goes once the head of its answer is there. Outcomes are what the server has said since on each when
// the work ends, up to its first line.
func HalfOpen(t testing.TB, addr, text, after string, n int) *Work {
	t.Helper()
	return begin(t, order{Job: "half", Addr: addr, Hello: text, After: []byte(after), Count: n})
}

// printable leaves out what no log shows: the heads of frames.
func printable(r rune) rune {
	if r == '\r' || r == '\n' || unicode.IsPrint(r) && r != unicode.ReplacementChar {
		return r
	}
	return -1
}

func halfOpen(o order) error {
	conns := make([]net.Conn, o.Count)
	for i := range conns {
		c, err := net.Dial("tcp", o.Addr)
		if err != nil {
			return err
		}
		defer func() { _ = c.Close() }()
		if _, err := io.WriteString(c, o.Hello); err != nil {
			return err
		}
		if len(o.After) > 0 {
			head := make([]byte, 0, 1024)
			for one := make([]byte, 1); !bytes.HasSuffix(head, []byte("\r\n\r\n")); head = append(head, one...) {
				if _, err := c.Read(one); err != nil {
					return err
				}
			}
			if _, err := c.Write(o.After); err != nil {
				return err
			}
		}
		conns[i] = c
	}
	out := tally{n: Outcomes{}}
	end := ended()
	<-end
	var wg sync.WaitGroup
	for _, c := range conns {
		wg.Go(func() {
			_ = c.SetReadDeadline(time.Now().Add(2 * time.Second))
			data, err := io.ReadAll(c)
			line, _, _ := strings.Cut(strings.Map(printable, string(data)), "\r\n")
			var late net.Error
			if errors.As(err, &late) && late.Timeout() {
				line += " (open)"
			} else {
				line += " (closed)"
			}
			out.add(strings.TrimSpace(line))
		})
	}
	wg.Wait()
	return answer(out.n)
}
