package hostd

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"weir/pkg/app"
	"weir/pkg/bus"
	"weir/pkg/objectid"
	"weir/pkg/obs"
	"weir/pkg/settings"
	"weir/services/host/internal/object"
	"weir/services/host/internal/placement"
	"weir/services/host/internal/wake"
)

// Limits bound objects; zero values are the defaults.
type Limits = object.Limits

// LimitsOf gives the limits as they were set.
func LimitsOf(l settings.Limits) Limits {
	return Limits{Run: l.CallTime, Budget: l.Instructions, Mailbox: l.Mailbox, Awake: settings.RaiseDescriptors(l.Awake), Idle: l.Idle,
		Database: l.DatabaseBytes, Log: l.LogBytes}
}

// Config is what a host works with.
type Config struct {
	App     *app.App
	NATS    *nats.Conn // the host's own; Close leaves it open
	Folder  *Folder
	Log     *slog.Logger
	Limits  Limits
	Metrics *obs.Metrics // nil: none
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
	kv, err := bus.NewKV(h.client, c.App.Name)
	if err != nil {
		return nil, fmt.Errorf("hostd: %w", err)
	}
	list, clean, err := wake.Open(filepath.Join(c.Folder.Dir, "wake.db"))
	if err != nil {
		return nil, fmt.Errorf("hostd: %w", err)
	}
	h.wake = list
	if err := findWork(list, filepath.Join(c.Folder.Dir, "objects"), c.Log); err != nil {
		return nil, errors.Join(fmt.Errorf("hostd: %w", err), list.Close(false))
	}
	if err := placement.ClaimUntil(ctx, h.js, c.App.Name, h.record(), c.Log); err != nil {
		return nil, errors.Join(fmt.Errorf("hostd: %w", err), list.Close(false))
	}
	h.outbox = newOutbox(h.client, c.Log)
	var observe object.Observer
	if c.Metrics != nil {
		observe = c.Metrics
	}
	h.objects = object.New(object.Config{App: c.App, Dir: filepath.Join(c.Folder.Dir, "objects"), Wake: list, Client: h.client, Buckets: kv, JS: h.js, Log: c.Log,
		Limits: c.Limits, Crashed: !clean, Receipt: h.outbox.receipt, End: h.outbox.end, Observe: observe, Barrier: c.Barrier})
	h.gauges()
	if err := h.subscribe(); err != nil {
		return nil, errors.Join(fmt.Errorf("hostd: %w", err), h.Close())
	}
	return h, nil
}

// gauges are the values that are read when they are asked for.
func (h *Host) gauges() {
	if h.c.Metrics == nil {
		return
	}
	for name, g := range map[string]struct {
		help string
		read func(object.Stats) float64
	}{
		"weir_objects_awake":               {"Objects awake.", func(s object.Stats) float64 { return float64(s.Awake) }},
		"weir_mailbox_depth":               {"Calls that wait at the object with the most.", func(s object.Stats) float64 { return float64(s.Deepest) }},
		"weir_edges":                       {"Edges of awake publishers.", func(s object.Stats) float64 { return float64(s.Edges) }},
		"weir_oldest_undelivered_seconds":  {"Age of the oldest event of an awake publisher that a follower has not confirmed.", func(s object.Stats) float64 { return s.Oldest.Seconds() }},
		"weir_publishers_with_undelivered": {"Publishers with events that were not confirmed, asleep or awake.", func(s object.Stats) float64 { return float64(s.Undelivered) }},
	} {
		h.c.Metrics.Gauge(h.c.App.Name, "host", name, g.help, func() float64 { return g.read(h.objects.Stats()) })
	}
}

// Run works until ctx ends, another data folder has taken the objects while NATS was away, or the wake list cannot be made
// durable.
func (h *Host) Run(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var wg sync.WaitGroup
	wg.Go(func() { h.outbox.run(ctx) })
	wg.Go(func() { h.objects.Run(ctx) })
	wg.Go(func() {
		if err := h.watchNATS(ctx); err != nil {
			stop(err)
		}
	})
	wg.Go(func() {
		select {
		case <-h.wake.Broken():
			stop(errWakeList)
		case <-ctx.Done():
		}
	})
	wg.Wait()
	if err := context.Cause(ctx); !errors.Is(err, ctx.Err()) {
		return err
	}
	return nil
}

var errWakeList = errors.New("hostd: the wake list of the data folder could not be made durable, and nothing can be without it: is the disk sound, and not full? The host must be started anew")

// record is what this host claims the objects with.
func (h *Host) record() placement.Record {
	name, _ := os.Hostname()
	return placement.Record{Folder: h.c.Folder.ID, Host: name, Token: h.token}
}

// watchNATS claims the objects again as soon as NATS is back, and looks after every publisher: NATS may have lost what
// it had.
func (h *Host) watchNATS(ctx context.Context) error {
	back := h.c.NATS.StatusChanged(nats.CONNECTED)
	defer h.c.NATS.RemoveStatusListener(back)
	for {
		select {
		case <-ctx.Done():
			return nil
		case _, ok := <-back:
			if !ok {
				return nil
			}
			h.objects.Listening()
			if err := placement.ClaimUntil(ctx, h.js, h.c.App.Name, h.record(), h.c.Log); err != nil && ctx.Err() == nil {
				return fmt.Errorf("hostd: %w", err)
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
		h.closeErr = h.wake.Close(true)
	})
	return h.closeErr
}
