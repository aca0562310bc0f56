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
	ws       *websocket.Conn
	frames   chan string
	ended    chan error
	patience time.Duration // of Next
}

// Connect opens a websocket at a path.
func (s *System) Connect(path string) (*Socket, error) {
	return DialSocket(s.listen, path, nil)
}

// DialSocket opens a websocket at a listener, with further headers.
func DialSocket(l *Pipe, path string, header http.Header) (*Socket, error) {
	d := websocket.Dialer{NetDialContext: l.Dial, HandshakeTimeout: 10 * time.Second}
	ws, resp, err := d.Dial("ws://app.test"+path, header)
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
	c := &Socket{ws: ws, frames: make(chan string, 100_000), ended: make(chan error, 1), patience: time.Second}
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

// Next gives the next frame, waiting a virtual while for it.
func (c *Socket) Next() (string, error) {
	select {
	case f, ok := <-c.frames:
		if !ok {
			err := <-c.ended
			c.ended <- err
			return "", err
		}
		return f, nil
	case <-time.After(c.patience):
		return "", fmt.Errorf("no frame")
	}
}

// Send sends a text frame.
func (c *Socket) Send(text string) error {
	return c.ws.WriteMessage(websocket.TextMessage, []byte(text))
}

// Raw sends a frame that a well-behaved client does not: binary, text that may be no JSON, or one over the size limit.
func (c *Socket) Raw(kind, text string) error {
	switch kind {
	case "binary":
		return c.ws.WriteMessage(websocket.BinaryMessage, []byte{1, 2, 3})
	case "big":
		// The server stops reading in the middle: that the write fails is no matter.
		_ = c.ws.WriteMessage(websocket.TextMessage, []byte(`"`+strings.Repeat("x", 300<<10)+`"`))
		return nil
	}
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

// DialSilent opens a websocket that takes what comes and never answers a ping.
func DialSilent(l *Pipe, path string) (*Socket, error) {
	d := websocket.Dialer{NetDialContext: l.Dial, HandshakeTimeout: 10 * time.Second}
	ws, resp, err := d.Dial("ws://app.test"+path, nil)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	ws.SetPingHandler(func(string) error { return nil })
	go func() {
		for {
			if _, _, err := ws.ReadMessage(); err != nil {
				return
			}
		}
	}()
	return &Socket{ws: ws}, nil
}
