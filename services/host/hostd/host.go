package hostd

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"weir/pkg/app"
	"weir/pkg/bus"
	"weir/pkg/objectid"
	"weir/services/host/internal/object"
	"weir/services/host/internal/wake"
)

// Limits bound objects; zero values are the defaults.
type Limits = object.Limits

// Observer is told what happens, for metrics.
type Observer = object.Observer

// Config is what a host works with.
type Config struct {
	App     *app.App
	NATS    *nats.Conn // the host's own; Close leaves it open
	Folder  *Folder
	Log     *slog.Logger
	Limits  Limits
	Observe Observer
	// Barrier, if it is set, stands in for what makes an object's commits durable. For faults, and to measure.
	Barrier func(id objectid.ID, sync func() error) error
	Stop    time.Duration // how long running calls may take when the host stops; default 15 s
}

// Host is a running host service.
type Host struct {
	c        Config
	token    string
	client   *bus.Client
	js       jetstream.JetStream
	wake     *wake.List
	objects  *object.Registry
	outbox   *outbox
	subs     []*nats.Subscription
	intake   []*nats.Subscription // what brings work of its own accord: it stops first
	names    sync.Map             // follower ids of consumers whose names hold only a hash
	closed   sync.Once
	closeErr error
}

// Open opens the data folder's wake list, subscribes and begins to answer.
func Open(ctx context.Context, c Config) (*Host, error) {
	if c.Stop == 0 {
		c.Stop = 15 * time.Second
	}
	b := make([]byte, 8)
	_, _ = rand.Read(b)
	h := &Host{c: c, token: hex.EncodeToString(b), client: bus.NewClient(c.NATS, c.App.Name)}
	var err error
	if h.js, err = jetstream.New(c.NATS, jetstream.WithPublishAsyncMaxPending(1<<16), jetstream.WithPublishAsyncTimeout(5*time.Second)); err != nil {
		return nil, fmt.Errorf("hostd: %w", err)
	}
	list, clean, err := wake.Open(filepath.Join(c.Folder.Dir, "wake.db"))
	if err != nil {
		return nil, fmt.Errorf("hostd: %w", err)
	}
	h.wake = list
	h.outbox = newOutbox(h.client, c.Log)
	h.objects = object.New(object.Config{App: c.App, Dir: filepath.Join(c.Folder.Dir, "objects"), Wake: list, Client: h.client, JS: h.js, Log: c.Log,
		Limits: c.Limits, Crashed: !clean, Receipt: h.outbox.receipt, End: h.outbox.end, Observe: c.Observe, Barrier: c.Barrier})
	if err := h.subscribe(); err != nil {
		return nil, errors.Join(fmt.Errorf("hostd: %w", err), h.Close())
	}
	return h, nil
}

// Run works until ctx ends.
func (h *Host) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	wg.Go(func() { h.outbox.run(ctx) })
	wg.Go(func() { h.objects.Run(ctx) })
	wg.Go(func() { h.watchNATS(ctx) })
	wg.Wait()
	return nil
}

// watchNATS looks after every publisher as soon as NATS is back: it may have lost what it had.
func (h *Host) watchNATS(ctx context.Context) {
	back := h.c.NATS.StatusChanged(nats.CONNECTED)
	defer h.c.NATS.RemoveStatusListener(back)
	for {
		select {
		case <-ctx.Done():
			return
		case _, ok := <-back:
			if !ok {
				return
			}
			h.objects.NATSBack()
		}
	}
}

// Close finishes running calls, for at most Config.Stop, and puts every object to sleep. It may be called again.
func (h *Host) Close() error {
	h.closed.Do(func() {
		for _, s := range h.intake {
			_ = s.Unsubscribe()
		}
		ctx, cancel := context.WithTimeout(context.Background(), h.c.Stop)
		defer cancel()
		h.objects.Close(ctx)
		h.outbox.flush()
		for _, s := range h.subs {
			_ = s.Unsubscribe()
		}
		h.closeErr = h.wake.Close()
	})
	return h.closeErr
}
