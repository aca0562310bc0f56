// Package pool keeps VMs with the app loaded, for handlers that own none: each serves one handler at a time, many in
// turn. It is safe for concurrent use.
package pool

import (
	"context"
	"log/slog"
	"sync"

	"weir/pkg/app"
	"weir/pkg/wire"
)

// Pool has up to Max VMs of one app, made when they are needed.
type Pool struct {
	app   *app.App
	log   *slog.Logger
	slots chan struct{}

	mu     sync.Mutex // guards what follows
	free   []*app.Instance
	closed bool
}

// New makes a pool of at most most VMs.
func New(a *app.App, most int, log *slog.Logger) *Pool {
	return &Pool{app: a, log: log, slots: make(chan struct{}, most)}
}

// Get gives a VM, waiting for one until ctx ends. Give it back with Put.
func (p *Pool) Get(ctx context.Context) (*app.Instance, error) {
	select {
	case p.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, wire.Errorf(wire.Overloaded, "as many handlers run as may; try again in a moment")
	}
	p.mu.Lock()
	if n := len(p.free); n > 0 {
		in := p.free[n-1]
		p.free = p.free[:n-1]
		p.mu.Unlock()
		return in, nil
	}
	p.mu.Unlock()
	in, err := p.app.Instance(func(text string) { p.log.Info(text, "from", "app") })
	if err != nil {
		<-p.slots
		return nil, err
	}
	return in, nil
}

// Put gives a VM back. good: it may serve again.
func (p *Pool) Put(in *app.Instance, good bool) {
	in.Caller, in.Buckets = nil, nil
	p.mu.Lock()
	if good && !p.closed {
		p.free = append(p.free, in)
		in = nil
	}
	p.mu.Unlock()
	if in != nil {
		in.Close()
	}
	<-p.slots
}

// Close frees the VMs that are not in use; the others go when they are given back.
func (p *Pool) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, in := range p.free {
		in.Close()
	}
	p.free = nil
}
