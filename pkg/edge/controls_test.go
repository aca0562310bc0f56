package edge

import (
	"slices"
	"strings"
	"testing"

	"weir/pkg/value"
)

// control is one rule broken from outside: in calm worlds, where faults would hide it.
type control struct {
	name   string
	calm   bool
	tamper func(*rules)
}

// bound is how many seeds may go by before the checker notices. Most controls need a few dozen, the rarest a thousand.
const bound = 5000

// controls tamper with what goes into the package's functions or comes out of them.
var controls = []control{
	// What a follower makes of a delivery.
	{"gap check off", false, decides(func(c *Cursor, d *Delivery) { d.Last = nil })},
	{"one start for all topics", false, decides(func(c *Cursor, _ *Delivery) {
		c.Set.Edges = slices.Clone(c.Set.Edges)
		for _, e := range c.Set.Edges {
			for i := range c.Set.Edges {
				c.Set.Edges[i].Start = max(c.Set.Edges[i].Start, e.Start)
			}
		}
	})},
	{"edge number ignored", false, decides(func(_ *Cursor, d *Delivery) { d.Number = 0 })},
	{"deliveries of an older set taken", false, decides(func(c *Cursor, d *Delivery) { d.Version = max(d.Version, c.Set.Version) })},
	{"incarnation ignored", false, decides(func(c *Cursor, d *Delivery) { d.Incarnation = c.Incarnation })},
	{"failed event not waited for", false, decides(func(c *Cursor, _ *Delivery) { c.Attempts = Attempts{} })},

	// What a follower makes of an answer.
	{"late answer of another incarnation", false, takes(func(_ *Cursor, _ *Answer, awaited *bool) { *awaited = true })},
	{"answer from before a crash", false, takes(func(_ *Cursor, a *Answer, _ *bool) { a.Have = 0 })},
	{"older answer taken", false, takes(func(c *Cursor, _ *Answer, _ *bool) { c.Set.Version, c.Number = 0, 0 })},
	{"older set taken as the known one", false, takes(func(c *Cursor, a *Answer, _ *bool) {
		a.Set.Version, a.Number = max(a.Set.Version, c.Set.Version), max(a.Number, c.Number)
	})},
	{"receipt before barrier, setback unnoticed", false, func(r *rules) {
		r.host.receiptEarly = true
		take := r.take
		r.take = func(c Cursor, pos uint64, a Answer, awaited bool) (Cursor, uint64, Heard, bool) {
			c, pos, heard, _ := take(c, pos, a, awaited)
			return c, pos, heard, false
		}
	}},

	// What a gateway makes of events and answers.
	{"edge number ignored by gateways", false, hears(func(_ *Feed, e *Event) { e.Number = 0 })},
	{"incarnation ignored by gateways", false, hears(func(f *Feed, e *Event) { e.Incarnation = f.Incarnation })},
	{"high-water mark off", false, hears(func(f *Feed, _ *Event) { f.High = 0 })},
	{"high-water mark kept over an incarnation", false, func(r *rules) {
		take := r.takeFeed
		r.takeFeed = func(f *Feed, a Answer, awaited bool) Heard {
			high := f.High
			heard := take(f, a, awaited)
			f.High = high
			return heard
		}
	}},
	{"starts ignored by gateways", false, func(r *rules) {
		r.takes = func(e Edge, v Event) bool { e.Start = 0; return e.Takes(v.Seq, v.Data) }
	}},

	// What a publisher makes of an edge set.
	{"new topic does not raise the edge number", false, numbers(func(_ Request, had, exists bool) bool { return exists && !had })},
	{"new filter does not raise the edge number", false, numbers(func(_ Request, had, _ bool) bool { return had })},
	{"removal does not raise the edge number", false, func(r *rules) {
		remove, drop := r.remove, r.removeIdentity
		r.remove = func(p *Publisher, q Request) []Change { defer keep(p)(); return remove(p, q) }
		r.removeIdentity = func(p *Publisher, id string) []Change { defer keep(p)(); return drop(p, id) }
	}},
	{"versions die with the rows", false, follows(func(p *Publisher, q Request, had bool) {
		if peer := p.Peers[q.Peer]; len(peer.Edges) == 1 && !had {
			peer.Version = 1
		}
	})},
	{"new edge starts at the beginning", false, follows(func(p *Publisher, q Request, had bool) {
		if e := p.Peers[q.Peer].Edges[q.Key]; !had {
			e.Start = 0
			p.Peers[q.Peer].Edges[q.Key] = e
		}
	})},
	{"follow again changes nothing", false, func(r *rules) {
		follow := r.follow
		r.follow = func(p *Publisher, q Request, f value.Filter) []Change { q.Failed = false; return follow(p, q, f) }
	}},
	{"drop of any edge", false, func(r *rules) {
		remove := r.remove
		r.remove = func(p *Publisher, q Request) []Change {
			if peer := p.Find(q.Peer, q.Owner); peer != nil && q.Kind == Drop {
				q.Since, q.Incarnation = peer.Edges[q.Key].Since, p.Incarnation
			}
			return remove(p, q)
		}
	}},
	{"devices outlive their identity", false, func(r *rules) {
		r.removeIdentity = func(p *Publisher, id string) []Change {
			for _, peer := range p.Peers {
				if peer.Name == id {
					return p.remove(peer, true, peer.keys()...)
				}
			}
			return nil
		}
	}},
	{"gateway's set under the version of a row", false, func(r *rules) {
		restore := r.restore
		r.restore = func(p *Publisher, peer, owner, identity string, version, confirmed uint64, e Edge) {
			had := p.Peers[peer] != nil
			restore(p, peer, owner, identity, version, confirmed, e)
			if !had {
				p.Peers[peer].Version = version
			}
		}
	}},

	// What a publisher answers.
	{"empty set without version", false, answers(func(_ *Publisher, _ Request, a *Answer) {
		if len(a.Set.Edges) == 0 && a.Base == 0 {
			a.Set.Version = 0
		}
	})},
	{"answer without rows", false, answers(func(_ *Publisher, _ Request, a *Answer) { a.Rows = nil })},
	{"cut answer taken for complete", false, answers(func(p *Publisher, _ Request, a *Answer) { a.Head, a.More = p.Head, false })},
	{"question taken as receipt", false, answers(func(p *Publisher, q Request, _ *Answer) {
		if peer := p.Find(q.Peer, q.Owner); peer != nil && q.Incarnation == p.Incarnation {
			peer.Confirmed = max(peer.Confirmed, q.Have)
		}
	})},
	{"restore without parent", false, func(r *rules) {
		answer := r.answer
		r.answer = func(p *Publisher, q Request, before uint64, changed []Change, rows Rows) (Answer, error) {
			if q.Incarnation == p.Parent {
				q.Incarnation = "unknown"
			}
			a, err := answer(p, q, before, changed, rows)
			a.Parent = ""
			return a, err
		}
	}},
	{"changes only, though edges went", false, func(r *rules) {
		answer := r.answer
		r.answer = func(p *Publisher, q Request, before uint64, changed []Change, rows Rows) (Answer, error) {
			if peer := p.Find(q.Peer, q.Owner); peer != nil && before != 0 {
				peer.whole = 0
			}
			return answer(p, q, before, changed, rows)
		}
	}},

	// What a publisher forgets.
	{"receipt of any incarnation", false, func(r *rules) {
		r.received = func(p *Publisher, x Receipt) bool { x.Incarnation = p.Incarnation; return p.Received(x) }
	}},
	{"trim beyond a lagging edge", false, func(r *rules) {
		r.trimTo = func(p *Publisher, relayed uint64) uint64 {
			to := p.TrimTo(relayed)
			for _, peer := range p.Peers {
				to = max(to, min(peer.Confirmed, p.Head))
			}
			return to
		}
	}},
	{"trim before the relay", true, func(r *rules) {
		r.trimTo = func(p *Publisher, _ uint64) uint64 { return p.TrimTo(p.Head) }
	}},

	// What a host does around it.
	{"cursor not in the transaction", false, host(func(g *glue) { g.cursorApart = true })},
	{"receipt before barrier", false, host(func(g *glue) { g.receiptEarly = true })},
	{"answer before barrier", false, host(func(g *glue) { g.answerEarly = true })},
	{"relay before barrier", false, host(func(g *glue) { g.relayEarly = true })},
	{"edge number before barrier", false, host(func(g *glue) { g.numberEarly = true })},
	{"ack floor as receipt", false, host(func(g *glue) { g.ackFloor = true })},
	{"expected sequence not checked", false, host(func(g *glue) { g.sequenceUnchecked = true })},
	{"token kept by a restore", false, host(func(g *glue) { g.tokenKept = true })},
	{"sockets go on after a restore", false, host(func(g *glue) { g.socketsGoOn = true })},
	{"attempts reset on restart", false, host(func(g *glue) { g.attemptsForgotten, g.poisonStays = true, true })},
	{"attempts counted after the handler", false, host(func(g *glue) { g.attemptsLate, g.poisonStays = true, true })},
	{"follower's incarnation ignored", false, host(func(g *glue) { g.ownerUnchecked = true })},
	{"missing receipts not asked for", false, host(func(g *glue) { g.noEnds = true })},
	{"changes taken for the whole set", true, host(func(g *glue) { g.deltaWhole = true })},
	{"events not held for a follow", true, host(func(g *glue) { g.eventsNotHeld = true })},
}

// harmless are rules that the others make unneeded for what is checked here: they save time or traffic.
var harmless = []control{
	{"changes added to any version", false, func(r *rules) {
		take := r.takeFeed
		r.takeFeed = func(f *Feed, a Answer, awaited bool) Heard {
			if a.Base != 0 {
				a.Base = f.Version
			}
			return take(f, a, awaited)
		}
	}},
}

// TestControls breaks one rule at a time.
func TestControls(t *testing.T) {
	if brief() {
		t.Skip("the model has one thread; the race detector finds nothing in it")
	}
	for _, c := range controls {
		if !strings.Contains(c.name, *only) {
			continue
		}
		seed, violation, _ := search(bound, c.calm, c.tamper)
		if violation == "" {
			t.Errorf("%s: not noticed within %d seeds", c.name, bound)
		} else {
			t.Logf("%-42s seed %4d: %.120s", c.name, seed, violation)
		}
	}
}

// TestHarmless shows that the absence of these rules is not seen.
func TestHarmless(t *testing.T) {
	for _, c := range harmless {
		if seed, violation, _ := search(300, c.calm, c.tamper); violation != "" {
			t.Errorf("%s: seed %d: %s\n%s", c.name, seed, violation, retrace(seed, c.calm, c.tamper))
		}
	}
}
