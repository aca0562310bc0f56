package edge

// healRounds bound how long a world without faults may take until every log is empty. livelock bounds the messages of
// one round.
const (
	healRounds = 200
	livelock   = 20000
)

// heal takes rounds without faults until every log is empty, publishes some last events, which must reach everyone,
// and looks at the end.
// spec: LOG-8
func (w *world) heal() {
	w.healing = true
	w.net, w.late = append(w.net, w.late...), nil
	w.note("healing")
	if !w.rest() {
		return
	}
	heads := make([]uint64, len(w.publishers))
	for i, p := range w.publishers {
		heads[i] = p.mem.Head
		p.publish(2 * len(w.topics))
	}
	if w.rest() {
		w.checkEnd(heads)
	}
}

// rest says whether the world came to rest without a violation.
func (w *world) rest() bool {
	for range healRounds {
		w.now += 1 << 17
		w.reopen()
		for _, p := range w.publishers {
			p.check()
			p.relay()
		}
		w.drain()
		w.consumers((*stream).repush, false)
		w.drain()
		for _, f := range w.followers {
			if !f.down {
				f.retry()
				f.receipts()
			}
		}
		for _, g := range w.gateways {
			g.retry()
		}
		w.drain()
		for _, p := range w.publishers {
			p.trim()
		}
		w.drain()
		if w.violation != "" {
			return false
		}
		if w.healed() {
			return true
		}
	}
	for _, p := range w.publishers {
		if m := p.mem; m.Trimmed < m.Head {
			w.fail("%s: log not empty after %d rounds: trimmed %d, head %d, sent %d", p.id, healRounds, m.Trimmed, m.Head, p.sent)
		}
	}
	w.fail("not healed after %d rounds", healRounds)
	return false
}

func (w *world) healed() bool {
	for _, p := range w.publishers {
		if p.mem.Trimmed < p.mem.Head {
			return false
		}
	}
	for _, f := range w.followers {
		if f.down {
			return false
		}
	}
	for _, g := range w.gateways {
		for _, fd := range g.feeds {
			if fd.asking != 0 || len(fd.todo) > 0 {
				return false
			}
		}
	}
	return true
}

// drain lets everything arrive that is on its way or follows from it.
func (w *world) drain() {
	for n := 0; ; n++ {
		moved := w.arrive()
		w.consumers(func(s *stream, c *consumer) { moved = s.push(c) || moved }, false)
		for _, p := range w.publishers {
			p.file.barrier(p.file.unsynced())
		}
		for _, f := range w.followers {
			f.file.barrier(f.file.unsynced())
		}
		if !moved && len(w.net) == 0 || w.violation != "" {
			return
		}
		if n > livelock {
			w.fail("livelock: %d messages on their way, the first: %s", len(w.net), w.net[0].label)
			return
		}
	}
}
