package crash

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

// device is a page of an example as its link.js is: a socket that comes back by itself, and requests over it.
type device struct {
	t    *testing.T
	name string
	url  string                  // ws://…/live?token=…
	back func(d *device)         // after each connection, in a goroutine of its own
	hear func(d *device, f note) // a frame that is no answer

	mu      sync.Mutex
	ws      *websocket.Conn
	next    int
	waiting map[int]chan note
	came    int // connections
	end     chan struct{}
	done    sync.WaitGroup
}

// note is any frame of the examples.
type note struct {
	Type    string
	Re      int
	OK      bool
	Error   string
	Data    json.RawMessage
	Topic   string
	Message json.RawMessage
	Inbox   json.RawMessage
}

var errLost = errors.New("the connection was lost before the answer came")

// enter signs in at an example and opens its socket.
func enter(t *testing.T, gateway, name string, back func(*device), hear func(*device, note)) *device {
	t.Helper()
	resp, err := http.Post("http://"+gateway+"/api/enter", "application/json", strings.NewReader(`{"name":"`+name+`"}`))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var in struct{ Token string }
	if err := json.NewDecoder(resp.Body).Decode(&in); err != nil || in.Token == "" {
		t.Fatalf("%s cannot enter: %s %v", name, resp.Status, err)
	}
	d := &device{t: t, name: name, url: "ws://" + gateway + "/live?token=" + in.Token, back: back, hear: hear, waiting: map[int]chan note{}, end: make(chan struct{})}
	d.done.Go(d.run)
	t.Cleanup(d.close)
	return d
}

func (d *device) run() {
	for {
		ws, resp, err := websocket.DefaultDialer.Dial(d.url, nil)
		if err == nil {
			resp.Body.Close()
			d.serve(ws)
		}
		select {
		case <-d.end:
			return
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (d *device) serve(ws *websocket.Conn) {
	d.mu.Lock()
	d.ws = ws
	d.came++
	d.mu.Unlock()
	var returning sync.WaitGroup
	if d.back != nil {
		returning.Go(func() { d.back(d) })
	}
	for {
		var f note
		if err := ws.ReadJSON(&f); err != nil {
			break
		}
		if f.Type != "answer" {
			if d.hear != nil {
				d.hear(d, f)
			}
			continue
		}
		d.mu.Lock()
		if c := d.waiting[f.Re]; c != nil {
			c <- f
			delete(d.waiting, f.Re)
		}
		d.mu.Unlock()
	}
	ws.Close()
	d.mu.Lock()
	d.ws = nil
	for id, c := range d.waiting {
		close(c)
		delete(d.waiting, id)
	}
	d.mu.Unlock()
	returning.Wait()
}

// ask sends a request and waits for its answer. With errLost it may have been carried out.
func (d *device) ask(op string, fields map[string]any) (json.RawMessage, error) {
	answer := make(chan note, 1)
	d.mu.Lock()
	if d.ws == nil {
		d.mu.Unlock()
		return nil, errors.New("not connected")
	}
	d.next++
	frame := map[string]any{"op": op, "id": d.next}
	for k, v := range fields {
		frame[k] = v
	}
	d.waiting[d.next] = answer
	err := d.ws.WriteJSON(frame)
	d.mu.Unlock()
	if err != nil {
		return nil, errLost
	}
	f, ok := <-answer
	switch {
	case !ok:
		return nil, errLost
	case !f.OK:
		return nil, errors.New(f.Error)
	}
	return f.Data, nil
}

// must asks until it is answered well, for a minute at most.
func (d *device) must(op string, fields map[string]any) json.RawMessage {
	for deadline := time.Now().Add(time.Minute); ; {
		data, err := d.ask(op, fields)
		if err == nil {
			return data
		}
		if time.Now().After(deadline) {
			d.t.Errorf("%s asks %s in vain: %v", d.name, op, err)
			return nil
		}
		select {
		case <-d.end:
			return nil
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// drop cuts the connection, so that the device comes back.
func (d *device) drop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ws != nil {
		d.ws.Close()
	}
}

func (d *device) close() {
	select {
	case <-d.end:
		return
	default:
	}
	close(d.end)
	d.drop()
	d.done.Wait()
}
