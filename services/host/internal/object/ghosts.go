package object

import (
	"sync"
	"time"

	"weir/pkg/edge"
	"weir/pkg/wire"
)

// presence knows which gateways live. It is safe for concurrent use.
type presence struct {
	mu    sync.Mutex // guards what follows
	since time.Time  // of listening without a break: who was not heard before may live
	heard map[string]time.Time
}

func newPresence() *presence { return &presence{since: time.Now(), heard: map[string]time.Time{}} }

// hear notes a gateway's word.
func (p *presence) hear(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.heard[id] = time.Now()
	for other, at := range p.heard {
		if time.Since(at) > 10*wire.GatewaySilence {
			delete(p.heard, other)
		}
	}
}

// restart forgets how long was listened: nothing was heard meanwhile.
func (p *presence) restart() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.since = time.Now()
}

// gone says whether a gateway is surely gone.
func (p *presence) gone(id string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Since(p.since) > wire.GatewaySilence && time.Since(p.heard[id]) > wire.GatewaySilence
}

// Listening tells that this host hears gateways again: NATS was away.
func (r *Registry) Listening() { r.presence.restart() }

// GatewayLives notes a gateway's word that it lives.
func (r *Registry) GatewayLives(id string) { r.presence.hear(id) }

// pruneGhosts removes the edges of gateways that are gone, from every publisher that is awake.
func (r *Registry) pruneGhosts() {
	if !r.c.Client.NATS.IsConnected() {
		r.presence.restart() // it is this host that hears nobody
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, o := range r.objects {
		o.mu.Lock()
		awake := o.open && o.edges > 0
		o.mu.Unlock()
		if awake {
			o.addControl((*activation).pruneGhosts)
		}
	}
}

func (a *activation) pruneGhosts() {
	if a == nil {
		return
	}
	a.stale = true // the relay may have taken a gateway for gone that came back
	for name := range a.db.Edges.Peers {
		if edge.IsFollower(name) || !a.r.presence.gone(name) {
			continue
		}
		if _, err := a.operate(edge.Request{Kind: edge.Gone, Peer: name}, nil); err != nil {
			a.r.c.Log.Error("the edges of a gateway that is gone cannot be removed", "object", a.id.String(), "error", err)
			return
		}
	}
}
