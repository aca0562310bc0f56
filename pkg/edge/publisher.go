package edge

import (
	"maps"
	"slices"

	"weir/pkg/objectid"
	"weir/pkg/value"
)

// Publisher is the edge table of one object, as of its last commit or the transaction in progress.
type Publisher struct {
	ID          objectid.ID
	Incarnation string
	Parent      string // the incarnation that this one was restored from
	Fork        uint64 // and its head there
	Head        uint64 // the last event's sequence
	Trimmed     uint64 // events up to here are deleted: all followers confirmed them
	Number      uint64 // the edge number
	Versions    uint64 // the counter that sets take their versions from; outlives the rows
	Peers       map[string]*Peer
}

// Peer is one follower or gateway with its edges.
type Peer struct {
	Name      string
	Owner     string
	Version   uint64
	Edges     map[Key]Edge
	Confirmed uint64 // what its receipts say; in the file as of the edge's making, or the last sleep
	Applied   uint64 // the cursor that its receipts name; memory only
	Attempts  int    // as its last receipt said; memory only
	Next      int64
	identity  map[string]string
	whole     uint64 // the version since which edges were only added or changed; memory only
}

// Change is one row of the edge table to write (Edge set) or to delete.
type Change struct {
	Peer    *Peer
	Edge    Edge
	Deleted bool
}

// Identity gives the id of the object that the connection of an edge acts as.
func (p *Peer) Identity(conn string) string {
	if IsFollower(p.Name) {
		return p.Name
	}
	return p.identity[conn]
}

// Set gives the peer's edges as they travel.
func (p *Peer) Set() Set {
	s := Set{Version: p.Version, Owner: p.Owner, Edges: make([]Edge, 0, len(p.Edges))}
	for _, k := range slices.SortedFunc(maps.Keys(p.Edges), compareKeys) {
		s.Edges = append(s.Edges, p.Edges[k])
	}
	return s
}

func compareKeys(a, b Key) int {
	if a.Conn != b.Conn {
		if a.Conn < b.Conn {
			return -1
		}
		return 1
	}
	if a.Topic < b.Topic {
		return -1
	}
	if a.Topic > b.Topic {
		return 1
	}
	return 0
}

// Restore puts a row of the file back into memory, after the counters. A gateway's rows need not agree on its set's
// version, and none has that of a removal: it gets the counter's, which no set that it was told is beyond.
func (p *Publisher) Restore(peer, owner, identity string, version, confirmed uint64, e Edge) {
	if p.Peers == nil {
		p.Peers = map[string]*Peer{}
	}
	q := p.Peers[peer]
	if q == nil {
		if !IsFollower(peer) {
			version = max(version, p.Versions)
		}
		q = &Peer{Name: peer, Owner: owner, Version: version, Confirmed: confirmed, Edges: map[Key]Edge{}, whole: version}
		p.Peers[peer] = q
	}
	q.add(e, identity)
}

func (p *Peer) add(e Edge, identity string) {
	p.Edges[e.Key] = e
	if !IsFollower(p.Name) {
		if p.identity == nil {
			p.identity = map[string]string{}
		}
		p.identity[e.Conn] = identity
	}
}

// Find gives the peer's edges in this life of it, nil if it has none.
func (p *Publisher) Find(peer, owner string) *Peer {
	if q := p.Peers[peer]; q != nil && q.Owner == owner {
		return q
	}
	return nil
}

// setOf gives a peer without edges, or with those of its past life, an empty set under the counter's version, so that
// it orders with the others.
func (p *Publisher) setOf(peer, owner string) Set {
	if q := p.Find(peer, owner); q != nil {
		return q.Set()
	}
	return Set{Version: p.Versions, Owner: owner}
}

// Follow makes or changes an edge that was accepted. A follow that changes nothing keeps the edge as it is, unless
// attempts are counted against it: then it takes a new version, which forgets them.
func (p *Publisher) Follow(q Request, filter value.Filter) []Change {
	peer := p.Find(q.Peer, q.Owner)
	var e Edge
	had := false
	if peer != nil {
		e, had = peer.Edges[q.Key]
	}
	if had && e.Filter.Equal(filter) && !q.Failed {
		return nil
	}
	_, exists := p.Peers[q.Peer]
	p.Versions++
	// What a host must learn before it takes a later event: another filter, and another topic of a follower it has.
	if had || exists && IsFollower(q.Peer) {
		p.Number++
	}
	var changes []Change
	if peer == nil {
		changes = p.forget(q.Peer)
		peer = &Peer{Name: q.Peer, Owner: q.Owner, Confirmed: p.Head, Edges: map[Key]Edge{}, whole: p.Versions}
		if p.Peers == nil {
			p.Peers = map[string]*Peer{}
		}
		p.Peers[q.Peer] = peer
	}
	peer.Version = p.Versions
	if !had {
		e = Edge{Key: q.Key, Start: p.Head}
	}
	e.Since, e.Filter, e.FilterJSON = p.Versions, filter, filter.JSON()
	peer.add(e, q.Identity)
	return append(changes, Change{Peer: peer, Edge: e})
}

// forget takes a peer's edges out without a word: they are replaced.
func (p *Publisher) forget(name string) []Change {
	peer := p.Peers[name]
	if peer == nil {
		return nil
	}
	delete(p.Peers, name)
	changes := make([]Change, 0, len(peer.Edges))
	for _, e := range peer.Edges {
		changes = append(changes, Change{Peer: peer, Edge: e, Deleted: true})
	}
	return changes
}

// remove deletes the edges of one peer that match, under one new version.
func (p *Publisher) remove(peer *Peer, raise bool, match func(Edge) bool) []Change {
	var changes []Change
	for k, e := range peer.Edges {
		if match(e) {
			delete(peer.Edges, k)
			changes = append(changes, Change{Peer: peer, Edge: e, Deleted: true})
		}
	}
	if len(changes) == 0 {
		return nil
	}
	p.Versions++
	if raise {
		p.Number++
	}
	peer.Version, peer.whole = p.Versions, p.Versions
	for _, c := range changes {
		peer.dropIdentity(c.Edge.Conn)
	}
	if len(peer.Edges) == 0 {
		delete(p.Peers, peer.Name)
	}
	return changes
}

func (p *Peer) dropIdentity(conn string) {
	for k := range p.Edges {
		if k.Conn == conn {
			return
		}
	}
	delete(p.identity, conn)
}

// Remove does what an unfollow, a drop, a disown or a closed connection asks for; nil when there is nothing to remove.
func (p *Publisher) Remove(q Request) []Change {
	peer := p.Find(q.Peer, q.Owner)
	if peer == nil {
		return nil
	}
	switch q.Kind {
	case Unfollow:
		return p.remove(peer, true, func(e Edge) bool { return e.Key == q.Key })
	case Drop:
		return p.remove(peer, true, func(e Edge) bool {
			return e.Key == q.Key && q.Incarnation == p.Incarnation && q.Since == e.Since
		})
	case Disown, Gone:
		return p.remove(peer, true, func(Edge) bool { return true })
	case Close:
		return p.remove(peer, false, func(e Edge) bool { return e.Conn == q.Key.Conn })
	}
	return nil
}

// RemoveIdentity removes every edge of an identity: the object's own, and those of its devices.
func (p *Publisher) RemoveIdentity(id string) []Change {
	var changes []Change
	for _, name := range slices.Sorted(maps.Keys(p.Peers)) {
		peer := p.Peers[name]
		changes = append(changes, p.remove(peer, true, func(e Edge) bool { return peer.Identity(e.Conn) == id })...)
	}
	return changes
}

// Durable says whether an object follows, Sockets whether a gateway does.
func (p *Publisher) Durable() bool {
	for name := range p.Peers {
		if IsFollower(name) {
			return true
		}
	}
	return false
}

// Sockets says whether a gateway follows.
func (p *Publisher) Sockets() bool {
	for name := range p.Peers {
		if !IsFollower(name) {
			return true
		}
	}
	return false
}
