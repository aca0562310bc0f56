package socket

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/gorilla/websocket"
)

// masked is a frame as a client sends it.
func masked(first byte, size int) []byte {
	b := []byte{first}
	switch {
	case size < 126:
		b = append(b, 0x80|byte(size))
	case size < 1<<16:
		b = binary.BigEndian.AppendUint16(append(b, 0x80|126), uint16(size))
	default:
		b = binary.BigEndian.AppendUint64(append(b, 0x80|127), uint64(size))
	}
	return append(append(b, "mask"...), slices.Repeat([]byte{0x81}, size)...)
}

// Frames are counted by their heads, however what is read is cut, and payloads that look like heads are none.
func TestFramesAreCounted(t *testing.T) {
	const fin = 0x80
	var s Socket
	for name, c := range map[string]struct {
		frames [][]byte
		want   int
	}{
		"text":            {[][]byte{masked(fin|1, 0), masked(fin|1, 1), masked(fin|1, 125), masked(fin|1, 126), masked(fin|1, 65535), masked(fin|1, 65536)}, 6},
		"pings, pongs":    {[][]byte{masked(fin|websocket.PingMessage, 0), masked(fin|websocket.PongMessage, 125), masked(fin|websocket.PingMessage, 3)}, 3},
		"small fragments": {[][]byte{masked(1, 0), masked(continuation, 0), masked(continuation, largeFragment-1), masked(fin|continuation, 0)}, 4},
		"large fragments": {[][]byte{masked(1, largeFragment), masked(continuation, largeFragment), masked(continuation, 100_000), masked(fin|continuation, 1)}, 2},
		"a close":         {[][]byte{masked(fin|1, 1), masked(fin|websocket.CloseMessage, 2)}, 1},
		"no such opcode":  {[][]byte{masked(fin|3, 1), masked(fin|0x7f, 1)}, 2},
	} {
		all := slices.Concat(c.frames...)
		for _, piece := range []int{1, 2, 3, 7, 2048, len(all)} {
			p, got := &pace{asked: &s.asked}, 0
			for b := range slices.Chunk(all, piece) {
				got += p.begun(b)
			}
			if got != c.want {
				t.Errorf("%s in pieces of %d: %d frames, want %d", name, piece, got, c.want)
			}
		}
	}
	s.asked.Store(true)
	p := &pace{asked: &s.asked}
	if got := p.begun(slices.Concat(masked(fin|websocket.PongMessage, 0), masked(fin|websocket.PongMessage, 0))); got != 1 {
		t.Errorf("a ping's answer and one more pong: %d frames", got)
	}
}
