package socket

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"log/slog"
	"maps"
	"net"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"

	"weir/pkg/app"
	"weir/pkg/objectid"
	"weir/pkg/value"
	"weir/services/gateway/internal/fanout"
	"weir/services/gateway/internal/pool"
)

// Bounds of one socket.
const (
	maxInbox      = 256
	maxInboxBytes = 1 << 20
	maxOutBytes   = 1 << 20
	maxOut        = 4096
	silence       = 60 * time.Second // of the peer, before its socket is closed
	pingEvery     = 25 * time.Second
	writeWithin   = 10 * time.Second
	handlerRun    = 10 * time.Second
	handlerBudget = 10_000_000
	maxReason     = 123  // bytes of a close frame's reason
	maxLate       = 4096 // frames that are read, for the peer's answer, after the socket's end
)

// Close codes.
const (
	closeNormal     = websocket.CloseNormalClosure
	closeUnreadable = websocket.CloseUnsupportedData
	closeBadJSON    = websocket.CloseInvalidFramePayloadData
	closeFailed     = websocket.CloseInternalServerErr
	closePolicy     = websocket.ClosePolicyViolation
	closeRestart    = websocket.CloseServiceRestart
	closeOverflow   = websocket.CloseTryAgainLater
)

// Config is what sockets work with.
type Config struct {
	App     *app.App
	Pool    *pool.Pool
	Fanout  *fanout.Fanout
	Caller  app.Caller
	Buckets app.Buckets
	Log     *slog.Logger
	// What a peer may send in a second, pings, pongs and fragments too, after as much at once; 0: anything.
	Frames     int
	FrameBytes int64
	Explain    bool // tell the peer what failed: for development
	// Overflowed is told of a socket that is closed for what it could not take.
	Overflowed func()
}

// Socket is one connection.
type Socket struct {
	c        Config
	id       string
	program  *app.Connection
	identity objectid.ID
	ws       *Conn
	ctx      context.Context
	cancel   context.CancelFunc
	gone     func(*Socket)
	asked    atomic.Bool // a ping waits for its pong

	mu        sync.Mutex // guards what follows
	inbox     []item
	inboxSize int
	running   bool // a goroutine runs handlers
	out       []outgoing
	outSize   int
	writing   bool // a goroutine writes
	stopping  bool // after the handler that runs
	ending    *ending
	state     []byte // conn.state as JSON
	follows   map[objectid.ID]bool
	ticking   bool // a tick is in the inbox
	missed    int  // ticks since that one
	timer     *time.Timer
	work      sync.WaitGroup
}

// ending says how a socket came to its end.
type ending struct {
	By     string // peer, program, error, overflow, shutdown
	Code   int
	Reason string
}

// New makes a socket of a connection that was just upgraded. gone is called once, when all is over.
func New(c Config, program *app.Connection, identity objectid.ID, seed []byte, ws *Conn, gone func(*Socket)) *Socket {
	b := make([]byte, 9)
	_, _ = rand.Read(b)
	if seed == nil {
		seed = []byte("{}")
	}
	s := &Socket{c: c, id: hex.EncodeToString(b), program: program, identity: identity, ws: ws, gone: gone, state: seed, follows: map[objectid.ID]bool{}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// ID names the connection; no other has or had it.
func (s *Socket) ID() string { return s.id }

// Identity is the object that the connection acts as.
func (s *Socket) Identity() objectid.ID { return s.identity }

// Run reads the socket until it ends, runs the program's open first and its close last.
func (s *Socket) Run() {
	s.ws.SetReadLimit(value.MaxFrame)
	alive := func() (over bool) {
		s.mu.Lock()
		over = s.ending != nil
		s.mu.Unlock()
		if !over { // an ended socket is not kept open by what its peer still sends
			_ = s.ws.SetReadDeadline(time.Now().Add(silence))
		}
		return over
	}
	alive()
	s.ws.SetPongHandler(func(string) error { alive(); return nil })
	s.ws.SetPingHandler(func(data string) error {
		if over := alive(); !over {
			_ = s.ws.WriteControl(websocket.PongMessage, []byte(data), time.Now().Add(writeWithin))
		}
		return nil
	})
	if s.program.Handlers["open"] {
		s.push(item{handler: "open"})
	}
	s.ping()
	if p := s.newPace(); p != nil {
		s.ws.out.took = func(b []byte) {
			if !p.allows(b) {
				s.end(ending{By: "overflow", Code: closePolicy, Reason: "more frames than this gateway allows: send fewer"})
			}
		}
	}
	if s.program.Handlers["timer"] {
		s.tick(time.Now(), 1)
	}
	for late := 0; late < maxLate; {
		kind, data, err := s.ws.ReadMessage()
		if err != nil {
			s.readFailed(err)
			break
		}
		if alive() {
			late++ // the peer may not have seen its end yet
			continue
		}
		if kind != websocket.TextMessage {
			s.end(ending{By: "error", Code: closeUnreadable, Reason: "frames are JSON text, not binary"})
			continue
		}
		if err := parse(data); err != nil {
			s.end(ending{By: "error", Code: closeBadJSON, Reason: "the frame is not JSON"})
			continue
		}
		if s.program.Handlers["frame"] {
			s.push(item{handler: "frame", data: data, size: len(data)})
		}
	}
	s.finish()
}

// parsing has a token for each large frame that is looked at: many at once would keep small ones, and everything else,
// from running.
var parsing = make(chan struct{}, max(1, runtime.GOMAXPROCS(0)-1))

const largeFrame = 8 << 10

// parse says whether a frame is JSON.
func parse(data []byte) error {
	if len(data) >= largeFrame {
		parsing <- struct{}{}
		defer func() { <-parsing }()
	}
	_, err := value.Parse(data)
	return err
}

// ping keeps asking the peer whether it is there.
func (s *Socket) ping() {
	var again func()
	again = func() {
		if s.ctx.Err() == nil {
			s.asked.Store(true)
			_ = s.ws.WriteControl(websocket.PingMessage, nil, time.Now().Add(writeWithin))
			time.AfterFunc(pingEvery, again)
		}
	}
	t := time.AfterFunc(pingEvery, again)
	context.AfterFunc(s.ctx, func() { t.Stop() })
}

func (s *Socket) readFailed(err error) {
	e := ending{By: "peer", Code: closeNormal}
	var closed *websocket.CloseError
	var timeout net.Error
	switch {
	case errors.As(err, &closed):
		e.Code, e.Reason = closed.Code, closed.Text
	case errors.Is(err, websocket.ErrReadLimit):
		e = ending{By: "error", Code: websocket.CloseMessageTooBig, Reason: "a frame over 256 KiB"}
	case errors.As(err, &timeout) && timeout.Timeout():
		e.Reason = "silent for a minute"
	default:
		e.Reason = "the connection broke"
	}
	s.end(e)
}

// end ends the socket, once: what was sent before goes out first, then the close frame.
func (s *Socket) end(e ending) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ending != nil {
		return
	}
	s.ending = &e
	if e.By == "overflow" {
		s.c.Overflowed()
	}
	s.startWriter()
}

// Lost ends the socket because a publisher no longer knows its edges: the gateway was away for too long.
func (s *Socket) Lost() {
	s.end(ending{By: "error", Code: closeOverflow, Reason: "the connection to a publisher was lost: connect again"})
}

// Stop ends the socket because the gateway stops, after the handler that runs.
func (s *Socket) Stop() {
	s.mu.Lock()
	s.stopping = true
	running := s.running
	s.mu.Unlock()
	if !running {
		s.end(shutdown)
	}
}

var shutdown = ending{By: "shutdown", Code: closeRestart, Reason: "the gateway restarts: connect again"}

// finish runs after the reader has ended: edges go, close runs, everything is freed.
func (s *Socket) finish() {
	s.mu.Lock()
	publishers := slices.Collect(maps.Keys(s.follows))
	following := s.running // a handler: it may be waiting for a follow that comes after this
	s.mu.Unlock()
	s.c.Fanout.Leave(s, publishers)
	if s.program.Handlers["close"] {
		s.mu.Lock()
		s.inbox = append(s.inbox, item{handler: "close"})
		s.startRunner()
		s.mu.Unlock()
	}
	s.work.Wait()
	s.mu.Lock()
	if s.timer != nil {
		s.timer.Stop()
	}
	publishers = slices.Collect(maps.Keys(s.follows))
	s.mu.Unlock()
	if following {
		s.c.Fanout.Leave(s, publishers)
	}
	s.cancel()
	_ = s.ws.Close()
	s.gone(s)
}
