package edge

import "weir/pkg/value"

// The makers of controls: each puts itself before or behind one of the rules.

func host(tamper func(*glue)) func(*rules) { return func(r *rules) { tamper(&r.host) } }

func decides(tamper func(*Cursor, *Delivery)) func(*rules) {
	return func(r *rules) {
		r.decide = func(c Cursor, pos uint64, d Delivery, now int64) Verdict {
			tamper(&c, &d)
			return Decide(c, pos, d, now)
		}
	}
}

func takes(tamper func(c *Cursor, a *Answer, awaited *bool)) func(*rules) {
	return func(r *rules) {
		r.take = func(c Cursor, pos uint64, a Answer, awaited bool) (Cursor, uint64, Heard, bool) {
			tamper(&c, &a, &awaited)
			return c.Take(pos, a, awaited)
		}
	}
}

func hears(tamper func(*Feed, *Event)) func(*rules) {
	return func(r *rules) {
		r.hear = func(f *Feed, e Event) Verdict {
			tamper(f, &e)
			return f.Hear(e)
		}
	}
}

func answers(tamper func(*Publisher, Request, *Answer)) func(*rules) {
	return func(r *rules) {
		r.answer = func(p *Publisher, q Request, before uint64, changed []Change, rows Rows) (Answer, error) {
			a, err := p.Answer(q, before, changed, rows)
			tamper(p, q, &a)
			return a, err
		}
	}
}

// follows tampers with an edge that a follow made or changed; had says that it was there.
func follows(tamper func(p *Publisher, q Request, had bool)) func(*rules) {
	return func(r *rules) {
		r.follow = func(p *Publisher, q Request, f value.Filter) []Change {
			had, _ := knows(p, q)
			changes := p.Follow(q, f)
			if len(changes) > 0 {
				tamper(p, q, had)
				changes[len(changes)-1].Edge = p.Peers[q.Peer].Edges[q.Key]
			}
			return changes
		}
	}
}

// numbers keeps the edge number as it was over some follows.
func numbers(some func(q Request, had, exists bool) bool) func(*rules) {
	return func(r *rules) {
		r.follow = func(p *Publisher, q Request, f value.Filter) []Change {
			if had, exists := knows(p, q); some(q, had, exists) {
				defer keep(p)()
			}
			return p.Follow(q, f)
		}
	}
}

func knows(p *Publisher, q Request) (had, exists bool) {
	if peer := p.Find(q.Peer, q.Owner); peer != nil {
		_, had = peer.Edges[q.Key]
	}
	return had, p.Peers[q.Peer] != nil
}

// keep gives a function that puts the edge number back.
func keep(p *Publisher) func() {
	n := p.Number
	return func() { p.Number = n }
}
