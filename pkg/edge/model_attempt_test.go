package edge

import "maps"

// attempt names an event at a follower's edge, of one incarnation and version.
type attempt struct {
	follower string
	n        int
	inc      string
	since    uint64
}

type poisoned struct {
	follower string
	n        int
}

type poison struct {
	outcome string
	left    int
}

// run is one attempt. It commits the handler's writes with the cursor, or counts the failure; an event that may have
// run before is counted first, so that a handler that kills its host is counted.
func (f *follower) run(pub int, e Event, again bool) bool {
	c, l := f.cursor(pub), f.link(pub)
	since := c.Set.Since(e.Topic)
	t := c.Attempts
	if !t.Of(e.Seq, since) {
		t = Attempts{Seq: e.Seq, Since: since}
	}
	if t.Count >= MaxAttempts {
		f.giveUp(pub, e, t)
		return false
	}
	id := attempt{f.id, int(e.At), e.Incarnation, since}
	count := func() {
		t.Count++
		t.Next = f.w.now + Backoff(t.Count)
		c.Attempts = t
		s := f.file.now().with(pub, c)
		s.due = maps.Clone(s.due)
		s.due[id] = f.w.now + 500<<(t.Count-1)
		f.file.commit(s)
	}
	f.w.checkAttempt(f, id)
	if again {
		count()
	}
	switch f.w.handler(id, again) {
	case "kill":
		f.crash(f.file.unsynced())
		return false
	case "fail":
		if !again {
			count()
		}
		if t.Count >= MaxAttempts {
			f.giveUp(pub, e, t)
		}
		return false
	}
	did := applied{pub, e.Incarnation, e.Seq, e.Topic, int(e.At)}
	if f.w.rules.host.cursorApart {
		s := f.file.now().with(pub, c)
		s.applied = append(s.applied, did)
		f.file.commit(s)
	}
	c.At, c.Attempts = e.Seq, Attempts{}
	s := f.file.now().with(pub, c)
	if !f.w.rules.host.cursorApart {
		s.applied = append(s.applied, did)
	}
	f.file.commit(s)
	l.pos, l.reopened = e.Seq, false
	f.w.checkApply(f, e, did)
	return true
}

// giveUp asks the publisher to drop the edge, as often as the event comes again.
func (f *follower) giveUp(pub int, e Event, t Attempts) {
	if f.link(pub).asking == 0 {
		f.request(pub, Request{Kind: Drop, Key: Key{Topic: e.Topic}, Seq: e.Seq, Since: t.Since, Attempts: t.Count})
	}
}

// due asks for failed events whose time has come.
func (f *follower) due() {
	for _, pub := range sorted(f.links) {
		if c := f.cursor(pub); c.Attempts.Count > 0 && !c.Waits(f.link(pub).pos, f.w.now) {
			f.ask(pub)
		}
	}
}

// handler is the app's: now and then an event fails for some attempts, or kills the process that runs it.
// counted says that the attempt is counted already: if its success is lost in a crash, it was a failure.
func (w *world) handler(id attempt, counted bool) string {
	p := w.poison[poisoned{id.follower, id.n}]
	if p == nil {
		p = &poison{}
		if !w.calm && w.rnd.IntN(w.poisoned) == 0 {
			p = &poison{pick(w.rnd, []string{"fail", "fail", "kill"}), 1 + w.rnd.IntN(12)}
		}
		w.poison[poisoned{id.follower, id.n}] = p
	}
	if counted || p.left > 0 {
		w.attempts = append(w.attempts, id)
	}
	if p.left <= 0 {
		return "ok"
	}
	if p.outcome != "kill" || !w.rules.host.poisonStays {
		p.left--
	}
	w.note("%s: %s at event %d", id.follower, p.outcome, id.n)
	w.stats[p.outcome]++
	return p.outcome
}
