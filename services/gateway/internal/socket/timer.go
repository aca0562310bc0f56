package socket

import "time"

// tick arms the program's timer for its nth tick after start: they stand on a grid, whatever a run of it takes.
func (s *Socket) tick(start time.Time, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ending != nil {
		return
	}
	s.timer = time.AfterFunc(time.Until(start.Add(time.Duration(n)*s.program.Every)), func() {
		s.mu.Lock()
		due := !s.ticking
		if due {
			s.ticking = true
		} else {
			s.missed++
		}
		s.mu.Unlock()
		if due {
			s.push(item{handler: "timer"})
		}
		s.tick(start, n+1)
	})
}

// missedTicks gives how many ticks passed unseen since the timer ran last, and lets the next one in.
func (s *Socket) missedTicks() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.missed
	s.ticking, s.missed = false, 0
	return n
}
