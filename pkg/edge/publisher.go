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
	Error     string
	conns     map[string]*conn
	whole     uint64 // the version since which only the peer's own operations changed its edges; memory only
}

// conn is one socket of a gateway's: whose it is, and its edges by topic.
type conn struct {
	identity string
	topics   map[string]bool
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
	if c := p.conns[conn]; c != nil {
		return c.identity
	}
	return ""
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
	if IsFollower(p.Name) {
		return
	}
	c := p.conns[e.Conn]
	if c == nil {
		if p.conns == nil {
			p.conns = map[string]*conn{}
		}
		c = &conn{topics: map[string]bool{}}
		p.conns[e.Conn] = c
	}
	c.identity = identity
	c.topics[e.Topic] = true
}

// drop takes one edge out.
func (p *Peer) drop(k Key) {
	delete(p.Edges, k)
	if c := p.conns[k.Conn]; c != nil {
		delete(c.topics, k.Topic)
		if len(c.topics) == 0 {
			delete(p.conns, k.Conn)
		}
	}
}

// of gives the keys of a connection's edges.
func (p *Peer) of(conn string) []Key {
	c := p.conns[conn]
	if c == nil {
		return nil
	}
	keys := make([]Key, 0, len(c.topics))
	for topic := range c.topics {
		keys = append(keys, Key{Conn: conn, Topic: topic})
	}
	return keys
}

func (p *Peer) keys() []Key { return slices.Collect(maps.Keys(p.Edges)) }

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

// remove deletes those edges of one peer that it has, under one new version.
func (p *Publisher) remove(peer *Peer, raise bool, keys ...Key) []Change {
	var changes []Change
	for _, k := range keys {
		if e, ok := peer.Edges[k]; ok {
			peer.drop(k)
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
	peer.Version = p.Versions
	if len(peer.Edges) == 0 {
		delete(p.Peers, peer.Name)
	}
	return changes
}

// Remove does what an unfollow, a drop, a disown or a closed connection asks for; nil when there is nothing to remove.
func (p *Publisher) Remove(q Request) []Change {
	peer := p.Find(q.Peer, q.Owner)
	if peer == nil {
		return nil
	}
	switch q.Kind {
	case Unfollow:
		return p.remove(peer, true, q.Key)
	case Drop:
		if q.Incarnation == p.Incarnation && q.Since == peer.Edges[q.Key].Since {
			return p.remove(peer, true, q.Key)
		}
	case Disown, Gone:
		return p.remove(peer, true, peer.keys()...)
	case Close:
		return p.remove(peer, false, peer.of(q.Key.Conn)...)
	}
	return nil
}

// RemoveIdentity removes every edge of an identity: the object's own, and those of its devices.
func (p *Publisher) RemoveIdentity(id string) []Change {
	var changes []Change
	for _, name := range slices.Sorted(maps.Keys(p.Peers)) {
		peer := p.Peers[name]
		keys := slices.DeleteFunc(peer.keys(), func(k Key) bool { return peer.Identity(k.Conn) != id })
		removed := p.remove(peer, true, keys...)
		if len(removed) > 0 {
			peer.whole = p.Versions // its own operations do not tell the peer of these
		}
		changes = append(changes, removed...)
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
