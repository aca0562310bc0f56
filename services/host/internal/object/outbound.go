package object

import (
	"context"
	"errors"
	"sync"
	"time"
	"weir/pkg/crashpoint"
)

// maxUnsynced commits may wait for a barrier; then the turns stand still.
const maxUnsynced = 128

// errBarrier is what a caller is told whose commit nobody knows to be durable.
var errBarrier = errors.New("the write could not be made durable; it may be lost or kept")

// outbound is the ordered way out of an object. What leaves is held until every commit made before it is durable;
// one sync serves all commits that arrived meanwhile.
type outbound struct {
	sync func() error

	mu      sync.Mutex // guards what follows; not held over a sync
	changed *sync.Cond
	commits uint64 // made
	synced  uint64 // known to be durable
	queue   []leaving
	running bool
	failed  error
	lazy    *time.Timer // a sync that nobody waits for yet; nil: none is due
}

// lazyAfter is how long a commit may stay unsynced that only receipts wait for: they are sent about once a second, and
// one sync serves all deliveries of that time.
const lazyAfter = 200 * time.Millisecond

type leaving struct {
	after uint64
	send  func(error)
}

func newOutbound(sync_ func() error) *outbound {
	o := &outbound{sync: sync_}
	o.changed = sync.NewCond(&o.mu)
	return o
}

// commit tells that a transaction was committed that wrote something.
func (o *outbound) commit() {
	o.mu.Lock()
	o.commits++
	o.start()
	o.mu.Unlock()
}

// commitLazy is commit for a delivery: what it wrote is synced with the next thing that leaves, or a moment later.
func (o *outbound) commitLazy() {
	o.mu.Lock()
	o.commits++
	o.startLater()
	o.mu.Unlock()
}

// leaveLazy is leave for what is in no hurry.
func (o *outbound) leaveLazy(send func(error)) {
	o.mu.Lock()
	if o.failed != nil || len(o.queue) == 0 && !o.running && o.synced == o.commits {
		o.mu.Unlock()
		o.leave(send)
		return
	}
	o.queue = append(o.queue, leaving{o.commits, send})
	o.startLater()
	o.mu.Unlock()
}

// startLater sees that a sync comes. Call it with the lock held.
func (o *outbound) startLater() {
	switch {
	case o.commits-o.synced >= maxUnsynced/2:
		o.start()
	case o.lazy == nil && !o.running:
		o.lazy = time.AfterFunc(lazyAfter, func() {
			o.mu.Lock()
			o.lazy = nil
			if o.synced < o.commits || len(o.queue) > 0 {
				o.start()
			}
			o.mu.Unlock()
		})
	}
}

// leave runs send, in order with everything else that leaves, once all commits made so far are durable; with an error
// if that is not to be had. send must not block.
func (o *outbound) leave(send func(error)) {
	o.mu.Lock()
	if o.failed != nil {
		o.mu.Unlock()
		send(o.failed)
		return
	}
	if len(o.queue) == 0 && !o.running && o.synced == o.commits {
		o.mu.Unlock()
		send(nil)
		return
	}
	o.queue = append(o.queue, leaving{o.commits, send})
	o.start()
	o.mu.Unlock()
}

// start sees that the syncing goroutine runs. Call it with the lock held.
func (o *outbound) start() {
	if !o.running && o.failed == nil {
		o.running = true
		go o.run()
	}
}

func (o *outbound) run() {
	o.mu.Lock()
	for o.failed == nil && (o.synced < o.commits || len(o.queue) > 0) {
		if target := o.commits; o.synced < target {
			o.mu.Unlock()
			err := o.sync()
			o.mu.Lock()
			if err != nil {
				o.failed = errors.Join(errBarrier, err)
				break
			}
			o.synced = target
			crashpoint.Reached(crashpoint.Durable)
		}
		for len(o.queue) > 0 && o.queue[0].after <= o.synced {
			send := o.queue[0].send
			o.queue[0] = leaving{}
			o.queue = o.queue[1:]
			o.mu.Unlock()
			send(nil)
			o.mu.Lock()
		}
		o.changed.Broadcast()
	}
	for _, l := range o.queue {
		o.mu.Unlock()
		l.send(o.failed)
		o.mu.Lock()
	}
	o.queue = nil
	o.running = false
	o.changed.Broadcast()
	o.mu.Unlock()
}

// wait returns once everything committed so far is durable and what waited before has left.
func (o *outbound) wait(ctx context.Context) error {
	o.mu.Lock()
	target := o.commits
	if o.failed != nil || o.synced >= target && !o.running && len(o.queue) == 0 {
		defer o.mu.Unlock()
		return o.failed
	}
	o.mu.Unlock()
	done := make(chan error, 1)
	o.leave(func(err error) { done <- err })
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// room waits until a further commit may be made.
func (o *outbound) room() {
	o.mu.Lock()
	for o.failed == nil && o.commits-o.synced >= maxUnsynced {
		o.start()
		o.changed.Wait()
	}
	o.mu.Unlock()
}

// drain waits until the goroutine has ended.
func (o *outbound) drain() {
	o.mu.Lock()
	if o.lazy != nil && o.lazy.Stop() {
		o.lazy = nil
	}
	for o.running {
		o.changed.Wait()
	}
	o.mu.Unlock()
}

// broken gives the failure of a barrier, nil without one.
func (o *outbound) broken() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.failed
}
