package object

import (
	"weir/pkg/edge"
	"weir/pkg/objectid"
)

// maxDormant sleeping followers are remembered; a further one is woken by the next event, whatever its filter says.
const maxDormant = 100_000

// dormant is what a host remembers of a sleeping follower that has filters, so that events which they leave out are
// passed without waking it. Its file is closed, and all of it durable.
type dormant struct {
	own   string
	links map[objectid.ID]*dormantLink
}

type dormantLink struct {
	c   edge.Cursor
	pos uint64
}

// rememberAsleep keeps what a follower that goes to sleep knows of publishers with a filter.
func (r *Registry) rememberAsleep(a *activation) {
	d := dormant{own: a.db.Own, links: map[objectid.ID]*dormantLink{}}
	for _, l := range a.links {
		for _, e := range l.c.Set.Edges {
			if !e.Filter.Empty() && len(l.held) == 0 && l.c.Attempts.Count == 0 && !l.reopened {
				d.links[l.publisher] = &dormantLink{l.c, l.pos}
				break
			}
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(d.links) > 0 && len(r.dormant) < maxDormant {
		r.dormant[a.id] = &d
	}
}

// wokenUp gives a follower back what was passed while it slept.
func (r *Registry) wokenUp(a *activation) {
	r.mu.Lock()
	d := r.dormant[a.id]
	delete(r.dormant, a.id)
	r.mu.Unlock()
	if d == nil || d.own != a.db.Own {
		return
	}
	for publisher, was := range d.links {
		if l := a.links[publisher.String()]; l != nil && l.c.Incarnation == was.c.Incarnation && l.c.At == was.c.At {
			l.pos = max(l.pos, was.pos)
		}
	}
}

// passAsleep judges a delivery for a sleeping follower, and says whether it is done with without waking it.
func (r *Registry) passAsleep(follower objectid.ID, in *Incoming) bool {
	r.mu.Lock()
	d := r.dormant[follower]
	if d == nil || r.objects[follower] != nil {
		r.mu.Unlock()
		return false
	}
	l := d.links[in.Publisher]
	if l == nil || in.Topic == "" && in.Owner != d.own {
		r.mu.Unlock()
		return false
	}
	verdict := edge.Decide(l.c, l.pos, in.Delivery, now())
	if verdict == edge.Pass {
		l.pos = in.Seq
	}
	receipt := edge.Receipt{Publisher: in.Publisher, Peer: follower.String(), Owner: d.own, Incarnation: l.c.Incarnation, Have: l.pos, Applied: l.c.At}
	r.mu.Unlock()
	if verdict != edge.Pass && verdict != edge.Skip {
		return false
	}
	in.ack()
	r.c.Receipt(receipt)
	return true
}
