package socket

import (
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"time"

	"github.com/gorilla/websocket"
)

// outgoing is one frame to send.
type outgoing struct {
	data     []byte
	prepared *websocket.PreparedMessage
	size     int
}

// send queues a frame for the peer.
func (s *Socket) send(o outgoing) {
	s.mu.Lock()
	if s.ending != nil {
		s.mu.Unlock()
		return
	}
	if len(s.out) >= maxOut || s.outSize+o.size > maxOutBytes {
		s.out = nil // the peer does not read: it will not read these either
		s.mu.Unlock()
		s.end(ending{By: "overflow", Code: closeOverflow, Reason: "this connection reads too slowly: connect again"})
		return
	}
	s.out = append(s.out, o)
	s.outSize += o.size
	s.startWriter()
	s.mu.Unlock()
}

// startWriter sees that what is queued is written. Call it with the lock held.
func (s *Socket) startWriter() {
	if !s.writing {
		s.writing = true
		s.work.Go(s.write)
	}
}

func (s *Socket) write() {
	runtime.Gosched() // while the processors are busy more frames come, which leave together
	for {
		s.mu.Lock()
		if len(s.out) == 0 {
			e := s.ending
			s.writing = false
			s.mu.Unlock()
			if e != nil {
				s.bye(*e)
			}
			return
		}
		batch := s.piece()
		s.mu.Unlock()
		if err := s.writeAll(batch); err != nil {
			s.end(ending{By: "peer", Code: closeNormal, Reason: "the connection broke"})
			_ = s.ws.Close()
			return
		}
		clear(batch) // the queue's array goes on to hold what comes, not what went
	}
}

// pieceBytes of frames leave together: each piece has its own deadline, and gives its room back.
const pieceBytes = 32 << 10

// piece takes the next frames to write. Call it with the lock held.
func (s *Socket) piece() []outgoing {
	n, size := 0, 0
	for n < len(s.out) && (n == 0 || size+s.out[n].size <= pieceBytes) {
		size += s.out[n].size
		n++
	}
	batch := s.out[:n:n]
	if s.out = s.out[n:]; len(s.out) == 0 {
		s.out = nil
	}
	return batch
}

// writeAll writes frames, several in one system call.
func (s *Socket) writeAll(batch []outgoing) error {
	_ = s.ws.SetWriteDeadline(time.Now().Add(writeWithin))
	if len(batch) > 1 {
		s.ws.out.hold()
	}
	size := 0
	var err error
	for _, o := range batch {
		if o.prepared != nil {
			err = s.ws.WritePreparedMessage(o.prepared)
		} else {
			err = s.ws.WriteMessage(websocket.TextMessage, o.data)
		}
		if err != nil {
			break
		}
		size += o.size
	}
	err = errors.Join(err, s.ws.out.flush())
	s.mu.Lock()
	s.outSize -= size
	s.mu.Unlock()
	return err
}

// bye sends the close frame, and gives the peer a moment to answer it.
func (s *Socket) bye(e ending) {
	if e.By == "peer" {
		_ = s.ws.Close()
		return
	}
	err := s.ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(e.Code, e.Reason), time.Now().Add(2*time.Second))
	if err != nil {
		_ = s.ws.Close()
		return
	}
	_ = s.ws.SetReadDeadline(time.Now().Add(2 * time.Second))
	t := time.AfterFunc(3*time.Second, func() { _ = s.ws.Close() }) // whatever the peer still sends
	context.AfterFunc(s.ctx, func() { t.Stop() })
}

// frame encodes what the program sends.
func (s *Socket) frame(data json.RawMessage) { s.send(outgoing{data: data, size: len(data)}) }
