package edge

import "maps"

// ghost is what only the checker reads: the whole log, and who followed what when, told again in plain words. It is
// part of the file's states, so that it goes back with them.
type ghost struct {
	all     []row
	base    uint64 // a restored file owes nothing up to here: it no longer had it
	peers   map[string]ghostPeer
	history []past
}

// ghostPeer is one life of a peer with its edges.
type ghostPeer struct {
	owner string
	edges map[Key]ghostEdge
}

type ghostEdge struct {
	start            uint64
	filter, identity string
}

// past says what a peer had as of the rows after seq.
type past struct {
	peer string
	seq  uint64
	ghostPeer
}

// set gives a peer other edges as of the rows after head.
func (g *ghost) set(peer string, head uint64, p ghostPeer) {
	g.peers[peer] = p
	if len(p.edges) == 0 {
		delete(g.peers, peer)
	}
	g.history = append(g.history, past{peer, head, p})
}

// follow: a new edge starts at the head, a known one only changes its filter, and another life has only this one.
// spec: EDGE-5, EDGE-6
func (g *ghost) follow(q Request, head uint64) {
	edges := map[Key]ghostEdge{}
	if p := g.peers[q.Peer]; p.owner == q.Owner {
		maps.Copy(edges, p.edges)
	}
	e, had := edges[q.Key]
	if !had {
		e = ghostEdge{head, "", q.Identity}
	}
	if had && e.filter == string(q.FilterJSON) {
		return
	}
	e.filter = string(q.FilterJSON)
	edges[q.Key] = e
	g.set(q.Peer, head, ghostPeer{q.Owner, edges})
}

// remove takes out those edges of a peer's life that match, and no others.
// spec: EDGE-9
func (g *ghost) remove(peer, owner string, head uint64, match func(Key, ghostEdge) bool) {
	p, ok := g.peers[peer]
	if !ok || p.owner != owner {
		return
	}
	edges := maps.Clone(p.edges)
	maps.DeleteFunc(edges, match)
	if len(edges) < len(p.edges) {
		g.set(peer, head, ghostPeer{owner, edges})
	}
}

// filters of the world, as they travel.
const (
	takesAll  = "{}"
	takesOdd  = `{"odd":true}`
	takesEven = `{"odd":false}`
)

// takes says without the code under test whether the filter takes the event.
func (e ghostEdge) takes(r row) bool {
	switch e.filter {
	case takesOdd:
		return r.n%2 == 1
	case takesEven:
		return r.n%2 == 0
	}
	return true
}

func (g *ghost) has(seq uint64, topic string, n int) bool {
	return seq > 0 && seq <= uint64(len(g.all)) && g.all[seq-1].n == n && g.all[seq-1].topic == topic
}

// due says what is known of a row and a peer's edge: whether the peer may get it, because the edge existed when the row
// was published, with a filter then or later that takes it; and whether it must, because that edge stands to this day
// and every filter since takes it.
func (g *ghost) due(peer, owner string, k Key, r row) (may, must bool) {
	if r.seq <= g.base {
		return false, false
	}
	var edges []ghostEdge
	for _, p := range g.history {
		if p.peer != peer {
			continue
		}
		e, ok := p.edges[k]
		ok = ok && p.owner == owner && e.start < r.seq
		switch {
		case p.seq < r.seq:
			edges = edges[:0]
			if ok {
				edges = append(edges, e)
			}
			must = ok
		case must && ok:
			edges = append(edges, e)
		default:
			must = false
		}
	}
	for _, e := range edges {
		may = may || e.takes(r)
		must = must && e.takes(r)
	}
	return may, must && may
}
