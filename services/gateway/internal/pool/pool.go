// Package pool keeps VMs with the app loaded, for handlers that own none: each serves one handler at a time, many in
// turn. Only so many handlers run code at once; one that waits for an object gives its place to others meanwhile. It is
// safe for concurrent use.
package pool

import (
	"context"
	"log/slog"
	"sync"

	"weir/pkg/app"
	"weir/pkg/luavm"
	"weir/pkg/wire"
)

// waiting is how many times more handlers there may be than places to run.
const waiting = 16

// Pool has VMs of one app, made when they are needed.
type Pool struct {
	app    *app.App
	log    *slog.Logger
	all    chan struct{} // a token per handler
	places chan struct{} // a token per handler that runs

	mu     sync.Mutex // guards what follows
	free   []*app.Instance
	closed bool
}

// New makes a pool in which at most running handlers run code at once, and 16 times as many have a VM.
func New(a *app.App, running int, log *slog.Logger) *Pool {
	return &Pool{app: a, log: log, all: make(chan struct{}, waiting*running), places: make(chan struct{}, running)}
}

// Get gives a VM and a place to run, waiting for them until ctx ends. Give the VM back with Put.
func (p *Pool) Get(ctx context.Context) (*app.Instance, error) {
	if !enter(ctx, p.all) {
		return nil, busy()
	}
	if !enter(ctx, p.places) {
		<-p.all
		return nil, busy()
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
		<-p.places
		<-p.all
		return nil, err
	}
	return in, nil
}

func enter(ctx context.Context, tokens chan struct{}) bool {
	select {
	case tokens <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func busy() error {
	return wire.Errorf(wire.Overloaded, "as many handlers run as may; try again in a moment")
}

// Scarce says whether most of the room is taken.
func (p *Pool) Scarce() bool { return len(p.all) > cap(p.all)*3/4 }

// Wait runs what a handler waits for, and lets others run meanwhile. It returns when this one may run again. ctx is the
// handler's meter, or made from it: a long handler gives its turn away too, also when there is nothing to wait for, since
// those who wait for a turn have all the places.
func (p *Pool) Wait(ctx context.Context, what func()) {
	_ = ctx.Done()
	<-p.places
	defer func() { p.places <- struct{}{} }()
	what()
}

// Meter bounds a handler. While it computes for so long that it must wait for its turn, others run in its place.
func (p *Pool) Meter(ctx context.Context, budget int64) *luavm.Meter {
	m := luavm.NewMeter(ctx, budget)
	m.WaitWith(func(wait func()) { p.Wait(ctx, wait) })
	return m
}

// Put gives a VM back. good: it may serve again. No more are kept than may run at once.
func (p *Pool) Put(in *app.Instance, good bool) {
	in.Caller, in.Buckets = nil, nil
	p.mu.Lock()
	if good && !p.closed && len(p.free) < cap(p.places) {
		p.free = append(p.free, in)
		in = nil
	}
	p.mu.Unlock()
	if in != nil {
		in.Close()
	}
	<-p.places
	<-p.all
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
