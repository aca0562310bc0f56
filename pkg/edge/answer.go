package edge

// Rows gives the kept events after seq, oldest first, until yield says stop.
type Rows func(after uint64, yield func(Event) bool) error

// AnswerBytes bounds the event data of one answer, so that it fits a message of the default size, one event included
// in any case.
const AnswerBytes = 512 << 10

// Answer answers the one question, "peer has q.Have of incarnation q.Incarnation": its set now, and for a follower
// every event after it that the set wants. That is complete: what is no longer kept was confirmed by this follower,
// or lies before an edge's start. changed is what an operation just did, and before the version it found: a gateway
// that knew that version is told only the difference, unless other edges of it went meanwhile, by what a hook did.
func (p *Publisher) Answer(q Request, before uint64, changed []Change, rows Rows) (Answer, error) {
	a := Answer{Publisher: p.ID, ID: q.ID, Incarnation: p.Incarnation, Have: q.Have, Head: p.Head, Number: p.Number,
		Parent: p.Parent, Fork: p.Fork}
	peer := p.Find(q.Peer, q.Owner)
	if peer != nil && !IsFollower(q.Peer) && (q.Kind == Follow || q.Kind == Unfollow || q.Kind == Close) &&
		q.Version == before && before >= peer.whole && q.Incarnation == p.Incarnation {
		a.Base = before
		a.Set, a.Removed = peer.difference(changed)
		return a, nil
	}
	a.Set = p.setOf(q.Peer, q.Owner)
	switch {
	case q.Incarnation == p.Incarnation:
		if peer != nil {
			a.Applied = peer.Applied
		}
	case q.Incarnation != "" && q.Incarnation == p.Parent:
		a.Have = min(q.Have, p.Fork)
	default:
		a.Have = 0
	}
	if !IsFollower(q.Peer) {
		p.page(q, &a)
		return a, nil
	}
	if len(a.Set.Edges) == 0 || a.Have >= p.Head {
		return a, nil
	}
	size := 0
	err := rows(a.Have, func(e Event) bool {
		if !a.Set.Wants(e.Topic, e.Seq, e.Data) {
			return true
		}
		// As it travels: base64, and a header with an entry per topic.
		if size += len(e.Data)*4/3 + 200 + 40*len(e.Last); size > AnswerBytes && len(a.Rows) > 0 {
			a.More, a.Head = true, a.Rows[len(a.Rows)-1].Seq
			return false
		}
		a.Rows = append(a.Rows, e)
		return true
	})
	return a, err
}

// difference gives what changes made of the edges: those that are there now, and those that went.
func (p *Peer) difference(changed []Change) (s Set, removed []Key) {
	s.Version = p.Version
	seen := map[Key]bool{}
	for _, c := range changed {
		k := c.Edge.Key
		if c.Peer != p || seen[k] {
			continue
		}
		seen[k] = true
		if e, ok := p.Edges[k]; ok {
			s.Edges = append(s.Edges, e)
		} else {
			removed = append(removed, k)
		}
	}
	return s, removed
}

// Received takes a receipt, if it is of this incarnation and of the follower's life that has the edges. It says
// whether that moved the follower's mark.
func (p *Publisher) Received(r Receipt) bool {
	peer := p.Find(r.Peer, r.Owner)
	if peer == nil || r.Incarnation != p.Incarnation {
		return false
	}
	moved := r.Have > peer.Confirmed
	peer.Confirmed = max(peer.Confirmed, r.Have)
	peer.Applied = max(peer.Applied, r.Applied)
	peer.Attempts, peer.Next, peer.Error = r.Attempts, r.Next, r.Error
	return moved
}

// TrimTo says through which event the log may be deleted: what every follower confirmed. With sockets, or without
// followers, no more than was relayed, since a follower may confirm what it got by a question.
func (p *Publisher) TrimTo(relayed uint64) uint64 {
	to := p.Head
	if !p.Durable() || p.Sockets() {
		to = min(to, relayed)
	}
	for name, peer := range p.Peers {
		if IsFollower(name) {
			to = min(to, peer.Confirmed)
		}
	}
	return max(to, p.Trimmed)
}

// page cuts a gateway's set that is too large for one message. The gateway asks on with the last key that it got, and
// adds what comes, as long as the set has not changed meanwhile: then it starts over.
func (p *Publisher) page(q Request, a *Answer) {
	edges := a.Set.Edges
	if q.Kind == Ask && q.Key != (Key{}) && q.Incarnation == p.Incarnation && q.Version == a.Set.Version {
		a.Base = q.Version
		for len(edges) > 0 && compareKeys(edges[0].Key, q.Key) <= 0 {
			edges = edges[1:]
		}
	}
	size := 0
	for i, e := range edges {
		if size += len(e.Conn) + len(e.Topic) + len(e.FilterJSON)*4/3 + 60; size > AnswerBytes && i > 0 {
			edges, a.More = edges[:i], true
			break
		}
	}
	a.Set.Edges = edges
}
