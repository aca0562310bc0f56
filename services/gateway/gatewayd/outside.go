package gatewayd

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"weir/pkg/app"
	"weir/pkg/bus"
	"weir/pkg/objectid"
	"weir/pkg/wire"
	"weir/services/gateway/internal/pool"
)

// What one object may take of a gateway's room: so many handlers wait for it at once, the others in line until their own
// deadline, or until the room gets scarce. So an object that is stuck leaves room for those that call others.
const (
	maxWaiting = 512
	lineLook   = 2 * time.Second // how often those in line look
)

// caller makes the calls of handlers to objects. While one waits, another handler has its place. It is safe for
// concurrent use.
type caller struct {
	client *bus.Client
	pool   *pool.Pool

	mu    sync.Mutex // guards lines
	lines map[objectid.ID]*line
}

// line is those who wait for one object.
type line struct {
	tokens chan struct{}
	users  int
}

// CallObject implements app.Caller.
func (c *caller) CallObject(ctx context.Context, id objectid.ID, method string, args []byte) (results []byte, err error) {
	l := c.join(id)
	defer c.leave(id, l)
	c.pool.Wait(ctx, func() {
		if err = c.line(ctx, l, id); err == nil {
			defer func() { <-l.tokens }()
			results, err = c.client.Call(ctx, wire.CallRequest{To: id.String(), Method: method, Args: json.RawMessage(args)})
		}
	})
	return results, err
}

// line waits for one of an object's tokens.
func (c *caller) line(ctx context.Context, l *line, id objectid.ID) error {
	t := time.NewTicker(lineLook)
	defer t.Stop()
	for {
		select {
		case l.tokens <- struct{}{}:
			return nil
		case <-t.C:
			if c.pool.Scarce() {
				return wire.Errorf(wire.Overloaded, "%d handlers of this gateway wait for %s already: try again later", maxWaiting, id)
			}
		case <-ctx.Done():
			return wire.Errorf(wire.Overloaded, "%s had no room for this call in time: try again later", id)
		}
	}
}

func (c *caller) join(id objectid.ID) *line {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.lines[id]
	if l == nil {
		l = &line{tokens: make(chan struct{}, maxWaiting)}
		c.lines[id] = l
	}
	l.users++
	return l
}

func (c *caller) leave(id objectid.ID, l *line) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if l.users--; l.users == 0 {
		delete(c.lines, id)
	}
}

// buckets are kv as handlers use it. While one waits, another handler has its place.
type buckets struct {
	kv   *bus.KV
	pool *pool.Pool
}

var _ app.Buckets = buckets{}

// Get implements app.Buckets.
func (b buckets) Get(ctx context.Context, bucket, key string) (data []byte, ok bool, err error) {
	b.pool.Wait(ctx, func() { data, ok, err = b.kv.Get(ctx, bucket, key) })
	return data, ok, err
}

// Set implements app.Buckets.
func (b buckets) Set(ctx context.Context, bucket, key string, data []byte) (err error) {
	b.pool.Wait(ctx, func() { err = b.kv.Set(ctx, bucket, key, data) })
	return err
}

// Delete implements app.Buckets.
func (b buckets) Delete(ctx context.Context, bucket, key string) (err error) {
	b.pool.Wait(ctx, func() { err = b.kv.Delete(ctx, bucket, key) })
	return err
}

// List implements app.Buckets.
func (b buckets) List(ctx context.Context, bucket, prefix, cursor string, limit int) (keys []string, more bool, err error) {
	b.pool.Wait(ctx, func() { keys, more, err = b.kv.List(ctx, bucket, prefix, cursor, limit) })
	return keys, more, err
}
