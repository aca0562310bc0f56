package edge

import (
	"cmp"
	"slices"
)

// jetstream keeps streams by publisher and token. Everything about it may be lost, late or come back.
type jetstream struct {
	w       *world
	streams []*stream // in the order of their making; gone ones may come back
}

// stream holds messages by sequence: the log's, as long as the expected sequence is checked.
type stream struct {
	w         *world
	pub       int
	token     string
	last      uint64
	gone      bool
	msgs      map[uint64]Event
	consumers map[cname]*consumer
	past      []consumer // as they were made: a deleted one may come back so
}

// cname is a consumer's name: the follower and its edge-set version.
type cname struct {
	peer    string
	version uint64
}

func compareNames(a, b cname) int {
	return cmp.Or(cmp.Compare(a.peer, b.peer), cmp.Compare(a.version, b.version))
}

type consumer struct {
	name    cname
	topics  []string
	start   uint64
	next    uint64
	pending map[uint64]int // deliveries by sequence
}

// maxPending is a small MaxAckPending.
const maxPending = 6

func (js *jetstream) find(pub int, token string) *stream {
	for _, s := range js.streams {
		if s.pub == pub && s.token == token && !s.gone {
			return s
		}
	}
	return nil
}

func (js *jetstream) create(pub int, token string, first uint64) {
	if js.find(pub, token) == nil {
		js.streams = append(js.streams, &stream{w: js.w, pub: pub, token: token, last: first - 1,
			msgs: map[uint64]Event{}, consumers: map[cname]*consumer{}})
	}
}

func (js *jetstream) remove(pub int, token string) {
	if s := js.find(pub, token); s != nil {
		s.gone = true
	}
}

func (js *jetstream) purge(pub int, token string, through uint64) {
	if s := js.find(pub, token); s != nil {
		s.forget(0, through)
	}
}

// forget deletes the messages in (after, through].
func (s *stream) forget(after, through uint64) {
	for seq := range s.msgs {
		if seq > after && seq <= through {
			delete(s.msgs, seq)
		}
	}
}

// publish stores the event if the stream's last sequence is the one before it. Core subscribers see it anyway.
func (js *jetstream) publish(pub int, token string, e Event) {
	js.w.core(pub, e)
	s := js.find(pub, token)
	if s == nil || !js.w.mild && js.w.fault(10) || s.last != e.Seq-1 && !js.w.rules.host.sequenceUnchecked {
		return
	}
	s.last++
	s.msgs[s.last] = e
	if s.last != e.Seq {
		js.w.fail("%s: event %d stored as sequence %d", e.Publisher, e.Seq, s.last)
	}
}

// consume makes a consumer, unless it stands.
func (s *stream) consume(name cname, topics []string, start uint64) {
	if s.gone || s.consumers[name] != nil {
		return
	}
	c := consumer{name, topics, start, start, nil}
	s.past = append(s.past, c)
	s.revive(c)
}

func (s *stream) revive(c consumer) {
	c.pending = map[uint64]int{}
	s.consumers[c.name] = &c
}

// push delivers what the consumer may have next.
func (s *stream) push(c *consumer) bool {
	for ; len(c.pending) < maxPending && c.next <= s.last; c.next++ {
		if e, ok := s.msgs[c.next]; ok && slices.Contains(c.topics, e.Topic) {
			c.next++
			s.deliver(c, c.next-1)
			return true
		}
	}
	return false
}

// repush delivers a pending message again: its time was up, or it was refused with a delay.
func (s *stream) repush(c *consumer) {
	if len(c.pending) > 0 {
		s.deliver(c, pick(s.w.rnd, sorted(c.pending)))
	}
}

func (s *stream) deliver(c *consumer, seq uint64) {
	c.pending[seq]++
	e, ok := s.msgs[seq]
	if !ok { // purged or lost: JetStream gives it up
		delete(c.pending, seq)
		return
	}
	d := Delivery{Event: e, Version: c.name.version, Again: c.pending[seq] > 1}
	ack := func() {
		s.w.send("ack", func() {
			if s.consumers[c.name] == c {
				delete(c.pending, seq)
			}
		})
	}
	s.w.send("delivery", func() { s.w.follower(c.name.peer).deliver(arrival{s.pub, d, ack}) })
}

// floor is the ack floor.
func (c *consumer) floor() uint64 {
	if len(c.pending) > 0 {
		return sorted(c.pending)[0] - 1
	}
	return c.next - 1
}

// misbehave is one thing that NATS, or its operator, may do.
func (js *jetstream) misbehave() {
	if len(js.streams) == 0 {
		return
	}
	rnd := js.w.rnd
	s := pick(rnd, js.streams[max(0, len(js.streams)-6):])
	some := func(n int) uint64 { return s.last - min(s.last, uint64(rnd.IntN(n))) }
	switch rnd.IntN(6) {
	case 0: // lost
		s.gone = true
	case 1: // rolled back
		to := some(4)
		s.forget(to, s.last)
		s.last = to
	case 2: // consumers lost with their server's memory
		s.consumers = map[cname]*consumer{}
	case 3: // a consumer back from the dead, or made late
		if len(s.past) > 0 {
			s.revive(pick(rnd, s.past))
		}
	case 4: // a stream back from the dead
		if js.find(s.pub, s.token) == nil {
			s.gone = false
		}
	case 5: // a message lost
		delete(s.msgs, some(3))
	}
}
