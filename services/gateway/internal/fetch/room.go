package fetch

import (
	"context"
	"io"

	"golang.org/x/sync/semaphore"

	"weir/pkg/wire"
)

const (
	maxBodies  = 128 << 20 // bytes of requests' large bodies that a gateway holds, as they arrive
	maxAnswers = 128 << 20 // and of large answers, until they are written
	freeBody   = 64 << 10  // of each, which need no room: those who fill it keep nobody small out
)

// held is what one body has of the room. One goroutine uses it at a time.
type held struct {
	room  *semaphore.Weighted
	size  int64 // of the body so far
	taken int64 // of the room
}

// more counts n more bytes of the body, and says how much room they need.
func (h *held) more(n int) int64 {
	h.size += int64(n)
	return max(0, h.size-freeBody-h.taken)
}

// take makes room for n more bytes, waiting a while for it.
func (h *held) take(ctx context.Context, n int) error {
	more := h.more(n)
	if h.try(more) {
		return nil
	}
	waiting, cancel := context.WithTimeout(ctx, roomWithin)
	defer cancel()
	if h.room.Acquire(waiting, more) != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return wire.Errorf(wire.Overloaded, "other requests' bodies take all the room; try again in a moment")
	}
	h.taken += more
	return nil
}

// try takes what more said, if there is so much room.
func (h *held) try(more int64) bool {
	if more > 0 && !h.room.TryAcquire(more) {
		return false
	}
	h.taken += more
	return true
}

// release gives all of it back.
func (h *held) release() {
	h.room.Release(h.taken)
	h.size, h.taken = 0, 0
}

// arriving is a body that takes room as it arrives: one that trickles holds no more than has come of it.
type arriving struct {
	io.Reader
	ctx context.Context
	h   *held
}

// Read implements io.Reader.
func (a *arriving) Read(p []byte) (int, error) {
	n, err := a.Reader.Read(p)
	if n > 0 {
		if bad := a.h.take(a.ctx, n); bad != nil {
			return 0, bad
		}
	}
	return n, err
}
