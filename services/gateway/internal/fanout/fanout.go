package fanout

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"log/slog"
	"sync"
	"time"

	"github.com/gorilla/websocket"
	"github.com/nats-io/nats.go"

	"weir/pkg/bus"
	"weir/pkg/edge"
	"weir/pkg/objectid"
	"weir/pkg/wire"
)

// Socket is what a Feed gives events to. Its methods must not block.
type Socket interface {
	ID() string
	Identity() objectid.ID
	// Deliver takes an event that an edge of the socket wants. f is shared by all who get the event.
	Deliver(f *Frame)
	// Lost ends the socket: a publisher no longer knows its edges.
	Lost()
}

// Frame is one event on its way to sockets; the forward envelope is encoded once, if anyone wants it.
type Frame struct {
	Event edge.Event

	once     sync.Once
	prepared *websocket.PreparedMessage
	size     int
}

// Forward gives the platform's envelope as a prepared frame, and its size.
func (f *Frame) Forward() (*websocket.PreparedMessage, int) {
	f.once.Do(func() {
		type from struct {
			ID    string `json:"id"`
			Class string `json:"class"`
			Name  string `json:"name"`
		}
		p := f.Event.Publisher
		data, err := wire.Encode(struct {
			Type  string          `json:"type"`
			Topic string          `json:"topic"`
			From  from            `json:"from"`
			Data  json.RawMessage `json:"data"`
		}{"event", f.Event.Topic, from{p.String(), p.Class, p.Name}, f.Event.Data})
		if err == nil {
			f.prepared, err = websocket.NewPreparedMessage(websocket.TextMessage, data)
		}
		if err == nil {
			f.size = len(data)
		}
	})
	return f.prepared, f.size
}

// Fanout has the feeds of one gateway.
type Fanout struct {
	id     string
	client *bus.Client
	log    *slog.Logger
	ctx    context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup

	mu    sync.Mutex // guards feeds; taken before a feed's
	feeds map[objectid.ID]*feed
}

// New makes a fanout under an id of its own.
func New(client *bus.Client, log *slog.Logger) *Fanout {
	b := make([]byte, 8)
	_, _ = rand.Read(b)
	f := &Fanout{id: "gw-" + hex.EncodeToString(b), client: client, log: log, feeds: map[objectid.ID]*feed{}}
	f.ctx, f.cancel = context.WithCancel(context.Background())
	return f
}

// Present tells hosts that this gateway lives, until ctx ends: the edges of one that is silent no longer count.
func (f *Fanout) Present(ctx context.Context) {
	t := time.NewTicker(wire.GatewayEvery)
	defer t.Stop()
	back := f.client.NATS.StatusChanged(nats.CONNECTED)
	defer f.client.NATS.RemoveStatusListener(back)
	for {
		if err := f.client.NATS.Publish(f.client.Subjects.Gateways(), []byte(f.id)); err != nil {
			f.log.Debug("hosts were not told that this gateway lives", "error", err)
		}
		select {
		case <-t.C:
		case _, ok := <-back:
			if !ok {
				return
			}
			f.mu.Lock()
			for _, fd := range f.feeds {
				fd.doubt()
			}
			f.mu.Unlock()
		case <-ctx.Done():
			return
		}
	}
}

// feed gives a publisher's feed, subscribed.
func (f *Fanout) feed(publisher objectid.ID) (*feed, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if fd := f.feeds[publisher]; fd != nil {
		fd.users++
		return fd, nil
	}
	fd := &feed{f: f, publisher: publisher, edges: map[string]map[string]subscriber{}, users: 1}
	sub, err := f.client.NATS.Subscribe(f.client.Subjects.AllEvents(publisher), fd.arrive)
	if err != nil {
		return nil, err
	}
	fd.sub = sub
	f.feeds[publisher] = fd
	return fd, nil
}

// release lets a feed go that nobody uses or has an edge in.
func (f *Fanout) release(fd *feed) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fd.users--
	fd.mu.Lock()
	idle := fd.users == 0 && fd.count == 0 && !fd.busy && len(fd.ops) == 0
	fd.mu.Unlock()
	if idle && f.feeds[fd.publisher] == fd {
		delete(f.feeds, fd.publisher)
		_ = fd.sub.Unsubscribe()
	}
}

// Follow asks a publisher for an edge of a socket, and waits for its word. refused is the publisher's.
func (f *Fanout) Follow(ctx context.Context, s Socket, publisher objectid.ID, topic string, filter []byte) error {
	return f.operate(ctx, s, publisher, edge.Request{Kind: edge.Follow, Key: edge.Key{Conn: s.ID(), Topic: topic}, FilterJSON: filter, Identity: s.Identity().String()})
}

// Unfollow removes a socket's edge.
func (f *Fanout) Unfollow(ctx context.Context, s Socket, publisher objectid.ID, topic string) error {
	return f.operate(ctx, s, publisher, edge.Request{Kind: edge.Unfollow, Key: edge.Key{Conn: s.ID(), Topic: topic}})
}

func (f *Fanout) operate(ctx context.Context, s Socket, publisher objectid.ID, q edge.Request) error {
	fd, err := f.feed(publisher)
	if err != nil {
		return err
	}
	defer f.release(fd)
	done := make(chan error, 1)
	fd.add(op{request: q, socket: s, deadline: deadline(ctx), done: done})
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Leave removes all edges of a socket to some publishers: here at once, at the publishers when they hear of it.
func (f *Fanout) Leave(s Socket, publishers []objectid.ID) {
	for _, p := range publishers {
		f.mu.Lock()
		fd := f.feeds[p]
		if fd != nil {
			fd.users++
		}
		f.mu.Unlock()
		if fd != nil {
			fd.drop(s.ID())
			fd.add(op{request: edge.Request{Kind: edge.Close, Key: edge.Key{Conn: s.ID()}}, deadline: time.Now().Add(10 * time.Second)})
			f.release(fd)
		}
	}
}

// Close tells every publisher that this gateway's edges are gone, as far as they can be reached, and stops.
func (f *Fanout) Close() {
	f.mu.Lock()
	feeds := f.feeds
	f.feeds = map[objectid.ID]*feed{}
	f.mu.Unlock()
	for _, fd := range feeds {
		fd.add(op{request: edge.Request{Kind: edge.Gone}, deadline: time.Now().Add(2 * time.Second)})
		_ = fd.sub.Unsubscribe()
	}
	stop := time.AfterFunc(3*time.Second, f.cancel)
	f.work.Wait()
	stop.Stop()
	f.cancel()
}

func deadline(ctx context.Context) time.Time {
	if d, ok := ctx.Deadline(); ok {
		return d
	}
	return time.Now().Add(10 * time.Second)
}
