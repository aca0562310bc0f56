package testkit

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/gorilla/websocket"
)

// Socket is a test's websocket. A goroutine reads it, so that nothing stands still because the test does not.
type Socket struct {
	ws     *websocket.Conn
	frames chan string
	ended  chan error
}

// Connect opens a websocket at a path.
func (s *System) Connect(path string) (*Socket, error) {
	d := websocket.Dialer{NetDialContext: s.listen.Dial, HandshakeTimeout: 10 * time.Second}
	ws, resp, err := d.Dial("ws://app.test"+path, nil)
	if resp != nil {
		defer resp.Body.Close()
	}
	if err != nil {
		if resp != nil {
			body, _ := io.ReadAll(resp.Body)
			return nil, fmt.Errorf("%d %s", resp.StatusCode, strings.TrimSpace(string(body)))
		}
		return nil, err
	}
	c := &Socket{ws: ws, frames: make(chan string, 100_000), ended: make(chan error, 1)}
	go func() {
		for {
			_, data, err := ws.ReadMessage()
			if err != nil {
				c.ended <- err
				close(c.frames)
				return
			}
			c.frames <- string(data)
		}
	}()
	return c, nil
}

// Next gives the next frame, waiting up to a virtual second for it.
func (c *Socket) Next() (string, error) {
	select {
	case f, ok := <-c.frames:
		if !ok {
			err := <-c.ended
			c.ended <- err
			return "", err
		}
		return f, nil
	case <-time.After(time.Second):
		return "", fmt.Errorf("no frame")
	}
}

// Send sends a text frame.
func (c *Socket) Send(text string) error {
	return c.ws.WriteMessage(websocket.TextMessage, []byte(text))
}

// Close closes the socket as a browser does.
func (c *Socket) Close() {
	_ = c.ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(1000, ""), time.Now().Add(time.Second))
	<-time.After(100 * time.Millisecond)
	_ = c.ws.Close()
}

// HTTP makes a request and gives the status and body.
func (s *System) HTTP(method, path, body string) (int, http.Header, string, error) {
	return s.Request(method, path, body, nil)
}

// Request is HTTP with a header.
func (s *System) Request(method, path, body string, header http.Header) (int, http.Header, string, error) {
	client := &http.Client{Transport: &http.Transport{DialContext: s.listen.Dial, DisableKeepAlives: true}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, "http://app.test"+path, strings.NewReader(body))
	if err != nil {
		return 0, nil, "", err
	}
	for name, values := range header {
		r.Header[name] = values
	}
	resp, err := client.Do(r)
	if err != nil {
		return 0, nil, "", err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	return resp.StatusCode, resp.Header, string(data), err
}
