package object

import (
	"context"
	"time"
)

// asking bounds one question to a publisher.
const asking = 10 * time.Second

// background runs work that an object's turn does not wait for; Close waits for it.
func (r *Registry) background(work func(context.Context)) {
	r.mu.Lock()
	if r.closing {
		r.mu.Unlock()
		return
	}
	r.workers.Add(1)
	r.mu.Unlock()
	go func() {
		defer r.workers.Done()
		ctx, cancel := context.WithTimeout(r.base, asking)
		defer cancel()
		work(ctx)
	}()
}

// controlIfAwake queues work for an object unless it has gone to sleep since.
func (r *Registry) controlIfAwake(o *Object, work func(*activation)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	o.mu.Lock()
	defer o.mu.Unlock()
	if r.objects[o.id] != o || !o.open {
		return
	}
	a := o.a
	o.control = append(o.control, func(now *activation) {
		if now != nil && now == a {
			work(now)
		}
	})
	o.start()
}

// later queues work between this turn and the next.
func (o *Object) later(work func(*activation)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	a := o.a
	o.control = append(o.control, func(now *activation) {
		if now != nil && now == a {
			work(now)
		}
	})
	o.start()
}
