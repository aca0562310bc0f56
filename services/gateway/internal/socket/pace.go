package socket

import (
	"time"

	"golang.org/x/time/rate"

	"weir/pkg/value"
)

// pace bounds what a peer sends. It is not safe for concurrent use.
type pace struct{ frames, bytes *rate.Limiter }

func (s *Socket) newPace() (p pace) {
	if n := s.c.Frames; n > 0 {
		p.frames = rate.NewLimiter(rate.Limit(n), n)
	}
	if n := s.c.FrameBytes; n > 0 {
		p.bytes = rate.NewLimiter(rate.Limit(n), max(int(n), value.MaxFrame))
	}
	return p
}

// allows counts a frame, and says whether it is within bounds.
func (p pace) allows(size int) bool {
	now := time.Now()
	return (p.frames == nil || p.frames.AllowN(now, 1)) && (p.bytes == nil || p.bytes.AllowN(now, size))
}
