package routerd

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"weir/pkg/app"
	"weir/pkg/bus"
	"weir/pkg/wire"
	"weir/services/router/internal/assets"
	"weir/services/router/internal/follow"
)

// Config is what a router works with.
type Config struct {
	App  *app.App
	NATS *nats.Conn // the router's own; Close leaves it open
	Log  *slog.Logger
}

// Router is a running router service.
type Router struct {
	c      Config
	ctx    context.Context
	cancel context.CancelFunc
	subs   []*nats.Subscription
	work   sync.WaitGroup
	slots  chan struct{}
}

// most requests are served at once; the rest is told that there is no room.
const most = 4096

// Open subscribes and begins to answer.
func Open(_ context.Context, c Config) (*Router, error) {
	js, err := jetstream.New(c.NATS)
	if err != nil {
		return nil, fmt.Errorf("routerd: %w", err)
	}
	r := &Router{c: c, slots: make(chan struct{}, most)}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	client := bus.NewClient(c.NATS, c.App.Name)
	f := follow.New(c.App, client)
	a := assets.New(c.App.Name, client.Subjects, js)
	for op, handle := range map[string]func(context.Context, []byte) any{
		wire.RouteEdge:      decode(f.Edge),
		wire.RouteStream:    decode(a.Stream),
		wire.RouteDelete:    decode(a.Delete),
		wire.RoutePurge:     decode(a.Purge),
		wire.RouteBucket:    decode(a.Bucket),
		wire.RouteKeys:      decode(a.Keys),
		wire.RouteStreams:   decode(a.Streams),
		wire.RouteConsumer:  decode(a.Consumer),
		wire.RouteUnconsume: decode(a.Unconsume),
	} {
		sub, err := c.NATS.QueueSubscribe(client.Subjects.Route(op), "routers", r.serve(handle))
		if err != nil {
			_ = r.Close()
			return nil, fmt.Errorf("routerd: %w", err)
		}
		if err := sub.SetPendingLimits(-1, -1); err != nil {
			return nil, fmt.Errorf("routerd: %w", err)
		}
		r.subs = append(r.subs, sub)
	}
	return r, nil
}

// decode makes a handler of messages out of one of requests.
func decode[Req, Reply any](handle func(context.Context, Req) Reply) func(context.Context, []byte) any {
	return func(ctx context.Context, data []byte) any {
		var req Req
		if err := json.Unmarshal(data, &req); err != nil {
			return map[string]any{"error": wire.Errorf(wire.BadValue, "a request that cannot be read: %v", err)}
		}
		return handle(ctx, req)
	}
}

// serve answers each request in a goroutine of its own, so that a slow publisher holds nobody else up.
func (r *Router) serve(handle func(context.Context, []byte) any) nats.MsgHandler {
	return func(m *nats.Msg) {
		select {
		case r.slots <- struct{}{}:
		default:
			r.respond(m, map[string]any{"busy": true, "error": wire.Errorf(wire.Overloaded, "this router serves %d requests already", most)})
			return
		}
		r.work.Go(func() {
			defer func() { <-r.slots }()
			ctx, cancel := context.WithTimeout(r.ctx, 35*time.Second)
			defer cancel()
			r.respond(m, handle(ctx, m.Data))
		})
	}
}

func (r *Router) respond(m *nats.Msg, reply any) {
	data, err := wire.Encode(reply)
	if err == nil {
		err = m.Respond(data)
	}
	if err != nil {
		r.c.Log.Debug("an answer was not sent", "subject", m.Subject, "error", err)
	}
}

// Run waits until ctx ends.
func (r *Router) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// Close answers what it has taken and stops. It may be called again.
func (r *Router) Close() error {
	for _, s := range r.subs {
		_ = s.Unsubscribe()
	}
	stop := time.AfterFunc(5*time.Second, r.cancel)
	r.work.Wait()
	stop.Stop()
	r.cancel()
	return nil
}
