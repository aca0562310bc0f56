package fetch

import (
	"context"
	"io"

	"golang.org/x/sync/semaphore"

	"weir/pkg/wire"
)

// maxBodies is how many bytes of bodies a gateway holds at once, those of requests as they arrive and those of answers
// until they are written.
const maxBodies = 256 << 20

// bodies is what one request holds of the room. One goroutine uses it at a time.
type bodies struct {
	room *semaphore.Weighted
	n    int64
}

// take makes room for n more bytes, waiting a while for it.
func (b *bodies) take(ctx context.Context, n int) error {
	ctx, cancel := context.WithTimeout(ctx, roomWithin)
	defer cancel()
	if b.room.Acquire(ctx, int64(n)) != nil {
		return wire.Errorf(wire.Overloaded, "other requests' bodies and answers take all the room; try again in a moment")
	}
	b.n += int64(n)
	return nil
}

// release gives all of it back.
func (b *bodies) release() {
	b.room.Release(b.n)
	b.n = 0
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
