package edge

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// row is one row of a publisher's log. n is unique in a world: the checker knows an event by it.
type row struct {
	seq    uint64
	topic  string
	n      int
	data   []byte
	number uint64 // the edge number as of its commit
}

// edgeRow is one row of the edge table, as the file keeps it.
type edgeRow struct {
	owner, identity string
	set, confirmed  uint64
	edge            Edge
}

type edgeKey struct {
	peer string
	Key
}

// pubState is what a publisher's file holds after a commit.
type pubState struct {
	meta  Publisher // without peers: those are in table
	token string
	rows  []row // in (Trimmed, Head]
	table map[edgeKey]edgeRow
	ghost
	opened *Publisher
}

// clone begins the state after s. What only grows is shared: s must not be continued twice, unless it is forked.
func (s *pubState) clone() *pubState {
	c := *s
	c.table, c.peers, c.opened = maps.Clone(s.table), maps.Clone(s.peers), nil
	return &c
}

func (s *pubState) fork() *pubState {
	c := s.clone()
	c.rows, c.all, c.history = slices.Clip(c.rows), slices.Clip(c.all), slices.Clip(c.history)
	return c
}

// open reads the file, as after a crash, a sleep or a rollback.
func (s *pubState) open(r *rules) *Publisher {
	p := s.meta
	keys := slices.SortedFunc(maps.Keys(s.table), func(a, b edgeKey) int {
		return cmp.Or(cmp.Compare(a.peer, b.peer), cmp.Compare(a.Conn, b.Conn), cmp.Compare(a.Topic, b.Topic))
	})
	for _, k := range keys {
		e := s.table[k]
		r.restore(&p, k.peer, e.owner, e.identity, e.set, e.confirmed, e.edge)
	}
	return &p
}

// read is open for those who only look.
func (s *pubState) read(r *rules) *Publisher {
	if s.opened == nil {
		s.opened = s.open(r)
	}
	return s.opened
}

// apply writes changes that the edge table in memory already has. A follower's rows agree on their set's version.
func (s *pubState) apply(changes []Change) {
	for _, c := range changes {
		k := edgeKey{c.Peer.Name, c.Edge.Key}
		if c.Deleted {
			delete(s.table, k)
			continue
		}
		s.table[k] = edgeRow{c.Peer.Owner, c.Peer.Identity(c.Edge.Conn), c.Peer.Version, c.Peer.Confirmed, c.Edge}
	}
	for _, c := range changes {
		s.update(c.Peer, func(e *edgeRow) { e.set = c.Peer.Version })
	}
}

// update changes the rows of one follower.
func (s *pubState) update(p *Peer, change func(*edgeRow)) {
	if !IsFollower(p.Name) {
		return
	}
	for k := range p.Edges {
		if e, ok := s.table[edgeKey{p.Name, k}]; ok && e.owner == p.Owner {
			change(&e)
			s.table[edgeKey{p.Name, k}] = e
		}
	}
}

// append publishes one event in the transaction that makes s of the publisher in memory.
func (s *pubState) append(p *Publisher, topic string, n int, data []byte) {
	p.Head++
	r := row{p.Head, topic, n, data, p.Number}
	s.rows, s.all = append(s.rows, r), append(s.all, r)
}

// events gives the kept events after seq with their headers. A header names the last events that are kept, or all that
// the object remembers; and the edge number as of the row, or a later one.
func (s *pubState) events(p *Publisher, after uint64, remembers, later bool, yield func(Event, row) bool) {
	rows := s.rows
	if remembers {
		rows = s.all
	}
	last := map[string]uint64{}
	for _, r := range rows {
		if r.seq > after && r.seq > s.meta.Trimmed {
			e := Event{Publisher: p.ID, Incarnation: p.Incarnation, Seq: r.seq, At: int64(r.n), Topic: r.topic, Data: r.data,
				Number: r.number, Last: maps.Clone(last)}
			if later {
				e.Number = p.Number
			}
			if !yield(e, r) {
				return
			}
		}
		last[r.topic] = r.seq
	}
}

// lasts gives each topic's last kept event.
func (s *pubState) lasts() map[string]uint64 {
	last := map[string]uint64{}
	for _, r := range s.rows {
		last[r.topic] = r.seq
	}
	return last
}

// differs says how the publisher in memory differs from what the rules ask of it, and from what the file would give.
func (s *pubState) differs(p *Publisher, r *rules) string {
	if len(p.Peers) != len(s.peers) {
		return fmt.Sprintf("%d peers, not %d", len(p.Peers), len(s.peers))
	}
	file := s.read(r)
	for name, g := range s.peers {
		for _, q := range []*Publisher{p, file} {
			peer := q.Find(name, g.owner)
			if peer == nil || len(peer.Edges) != len(g.edges) {
				return fmt.Sprintf("%s of %s has %+v, not %+v", name, g.owner, peer, g.edges)
			}
			for k, e := range g.edges {
				has, ok := peer.Edges[k]
				if !ok || has.Start != e.start || string(has.FilterJSON) != e.filter || peer.Identity(k.Conn) != e.identity {
					return fmt.Sprintf("%s's edge %v is %+v of %s, not %+v", name, k, has, peer.Identity(k.Conn), e)
				}
				if has.Since != p.Peers[name].Edges[k].Since {
					return fmt.Sprintf("%s's edge %v is kept under another version", name, k)
				}
			}
			if peer.Version < p.Peers[name].Version {
				return fmt.Sprintf("%s's set is at version %d, in the file at %d", name, p.Peers[name].Version, peer.Version)
			}
		}
	}
	return ""
}
