package socket

import (
	"encoding/binary"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"
	"golang.org/x/time/rate"

	"weir/pkg/value"
)

const (
	continuation  = 0       // the opcode of every fragment but a message's first
	largeFragment = 1 << 10 // from so many bytes on a fragment is not counted: browsers cut what is large, and a message is bounded
	headRoom      = 4 << 10 // for the heads of the largest message, in one frame or in large fragments
)

// pace bounds what a peer sends, as it comes off the wire: pings, pongs and fragments never need to make a message. One
// goroutine may use it.
type pace struct {
	frames, bytes *rate.Limiter // nil: any number
	asked         *atomic.Bool  // a ping waits for its pong, which is not counted
	head          []byte        // what has come of a frame's head
	left          uint64        // bytes still to come of its payload
}

// newPace gives nil if the peer may send anything.
func (s *Socket) newPace() *pace {
	if s.c.Frames == 0 && s.c.FrameBytes == 0 {
		return nil
	}
	p := &pace{asked: &s.asked}
	if n := s.c.Frames; n > 0 {
		p.frames = rate.NewLimiter(rate.Limit(n), n)
	}
	if n := s.c.FrameBytes; n > 0 {
		p.bytes = rate.NewLimiter(rate.Limit(n), max(int(n), value.MaxFrame+headRoom))
	}
	return p
}

// allows takes what was read, and says whether it is within bounds.
func (p *pace) allows(b []byte) bool {
	now := time.Now()
	return (p.bytes == nil || p.bytes.AllowN(now, len(b))) && (p.frames == nil || p.frames.AllowN(now, p.begun(b)))
}

// begun counts the frames whose heads end in b.
func (p *pace) begun(b []byte) (n int) {
	for len(b) > 0 {
		if skip := min(p.left, uint64(len(b))); skip > 0 {
			p.left, b = p.left-skip, b[skip:]
			continue
		}
		p.head, b = append(p.head, b[0]), b[1:]
		size, whole := payload(p.head)
		if !whole {
			continue
		}
		if p.counts(p.head[0]&0xf, size) {
			n++
		}
		p.head, p.left = p.head[:0], size
	}
	return n
}

func (p *pace) counts(opcode byte, size uint64) bool {
	switch opcode {
	case websocket.CloseMessage: // none comes after it
		return false
	case websocket.PongMessage:
		return !p.asked.Swap(false)
	case continuation:
		return size < largeFragment
	}
	return true
}

// payload gives the size of a frame's payload, once its head is whole (RFC 6455, 5.2). A client's frame has a mask.
func payload(head []byte) (size uint64, whole bool) {
	if len(head) < 2 {
		return 0, false
	}
	size = uint64(head[1] & 0x7f)
	more := 0
	switch size {
	case 126:
		more = 2
	case 127:
		more = 8
	}
	if len(head) < 2+more+4 {
		return 0, false
	}
	switch more {
	case 2:
		size = uint64(binary.BigEndian.Uint16(head[2:]))
	case 8:
		size = binary.BigEndian.Uint64(head[2:])
	}
	return size, true
}
