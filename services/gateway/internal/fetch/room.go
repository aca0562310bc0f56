package fetch

import (
	"context"
	"io"

	"golang.org/x/sync/semaphore"

	"weir/pkg/wire"
)

const (
	maxBodies = 256 << 20 // bytes of large bodies that a gateway holds, of requests as they arrive and of answers until they are written
	freeBody  = 64 << 10  // of each, which need no room: those who fill it keep nobody small out
)

// bodies is what one request holds of the room. One goroutine uses it at a time.
type bodies struct {
	room  *semaphore.Weighted
	size  int64 // of the body so far
	taken int64 // of the room
}

// take makes room for n more bytes of a body, waiting a while for it.
func (b *bodies) take(ctx context.Context, n int) error {
	b.size += int64(n)
	more := b.size - freeBody - b.taken
	if more <= 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, roomWithin)
	defer cancel()
	if b.room.Acquire(ctx, more) != nil {
		return wire.Errorf(wire.Overloaded, "other requests' bodies and answers take all the room; try again in a moment")
	}
	b.taken += more
	return nil
}

// release gives all of it back, for the next body.
func (b *bodies) release() {
	b.room.Release(b.taken)
	b.size, b.taken = 0, 0
}

// arriving is a body that takes room as it arrives: one that trickles holds no more than has come of it.
type arriving struct {
	io.Reader
	ctx context.Context
	b   *bodies
}

// Read implements io.Reader.
func (a *arriving) Read(p []byte) (int, error) {
	n, err := a.Reader.Read(p)
	if n > 0 {
		if bad := a.b.take(a.ctx, n); bad != nil {
			return 0, bad
		}
	}
	return n, err
}
