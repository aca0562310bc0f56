package socket

import "weir/services/gateway/internal/fanout"

// item is one entry of the inbox.
type item struct {
	handler string
	data    []byte        // of a frame
	event   *fanout.Frame // of an event
	size    int
}

// Deliver takes an event for the socket.
func (s *Socket) Deliver(f *fanout.Frame) {
	switch {
	case s.program.Forward:
		if prepared, size := f.Forward(); prepared != nil {
			s.send(outgoing{prepared: prepared, size: size})
		}
	case s.program.Handlers["event"]:
		s.push(item{handler: "event", event: f, size: len(f.Event.Data)})
	}
}

// push queues an item for the program.
func (s *Socket) push(it item) {
	s.mu.Lock()
	if s.ending != nil || s.stopping {
		s.mu.Unlock()
		return
	}
	if len(s.inbox) >= maxInbox || s.inboxSize+it.size > maxInboxBytes {
		s.mu.Unlock()
		s.end(ending{By: "overflow", Code: closeOverflow, Reason: "more came than this connection could take: connect again"})
		return
	}
	s.inbox = append(s.inbox, it)
	s.inboxSize += it.size
	s.startRunner()
	s.mu.Unlock()
}

func (s *Socket) startRunner() {
	if !s.running {
		s.running = true
		s.work.Go(s.runHandlers)
	}
}

func (s *Socket) runHandlers() {
	for {
		s.mu.Lock()
		if len(s.inbox) == 0 {
			s.running = false
			stopping := s.stopping
			s.mu.Unlock()
			if stopping {
				s.end(shutdown)
			}
			return
		}
		it := s.inbox[0]
		s.inbox = s.inbox[1:]
		s.inboxSize -= it.size
		skip := (s.ending != nil || s.stopping) && it.handler != "close"
		s.mu.Unlock()
		if !skip {
			s.handle(it)
		}
	}
}
