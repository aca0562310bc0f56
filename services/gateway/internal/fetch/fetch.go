package fetch

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	lua "github.com/yuin/gopher-lua"
	"golang.org/x/sync/semaphore"

	"weir/pkg/app"
	"weir/pkg/failure"
	"weir/pkg/objectid"
	"weir/pkg/wire"
	"weir/services/gateway/internal/pool"
)

// Bounds of one request.
const (
	maxBody    = 10 << 20
	within     = 30 * time.Second
	roomWithin = 5 * time.Second // for a VM, or for a body; then the client is told to come again
	budget     = 10_000_000
	maxAnswer  = 10 << 20
)

// Upgrade is what request:upgrade asked for.
type Upgrade struct {
	Program  *app.Connection
	Seed     []byte
	Identity objectid.ID
}

// Config is what a Handler works with.
type Config struct {
	App     *app.App
	Pool    *pool.Pool
	Caller  app.Caller
	Buckets app.Buckets
	Log     *slog.Logger
	Remote  func(*http.Request) string // the client's address
	Explain bool                       // show a failure to the browser as a page: for development
	// Upgrade takes over a request whose handler returned an upgrade.
	Upgrade func(http.ResponseWriter, *http.Request, *Upgrade)
}

// Handler answers requests. It is safe for concurrent use.
type Handler struct {
	c       Config
	bodies  *semaphore.Weighted
	answers *semaphore.Weighted
}

// New makes a handler.
func New(c Config) *Handler {
	return &Handler{c, semaphore.NewWeighted(maxBodies), semaphore.NewWeighted(maxAnswers)}
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), within)
	defer cancel()
	if r.ContentLength > maxBody {
		http.Error(w, "the body is larger than 10 MiB", http.StatusRequestEntityTooLarge)
		return
	}
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(within)) // a body that trickles takes no longer than a request may
	arrived := &held{room: h.bodies}
	defer arrived.release()
	var body strings.Builder
	if err := h.read(ctx, &body, w, r, arrived); err != nil {
		var large *http.MaxBytesError
		var full *wire.Error
		switch {
		case errors.As(err, &full):
			h.refuse(w, r, err)
		case errors.As(err, &large):
			http.Error(w, "the body is larger than 10 MiB", http.StatusRequestEntityTooLarge)
		case errors.Is(err, os.ErrDeadlineExceeded):
			http.Error(w, "the body did not arrive in time", http.StatusGatewayTimeout)
		default:
			http.Error(w, "the body did not arrive", http.StatusBadRequest)
		}
		return
	}
	_ = control.SetReadDeadline(time.Time{})
	if !h.c.App.Fetch {
		http.NotFound(w, r)
		return
	}
	waiting, got := context.WithTimeout(ctx, roomWithin)
	in, err := h.c.Pool.Get(waiting)
	got()
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	in.Caller, in.Buckets = h.c.Caller, h.c.Buckets
	answer, upgrade, err := h.run(ctx, in, r, body.String())
	h.c.Pool.Put(in, err == nil)
	body.Reset()
	arrived.release()
	leaving := &held{room: h.answers}
	defer leaving.release()
	switch {
	case err != nil:
		h.refuse(w, r, err)
	case upgrade != nil:
		h.c.Upgrade(w, r, upgrade)
	case !leaving.try(leaving.more(len(answer.body))):
		// Not to be tried again: the handler did what it does.
		h.c.Log.Warn("an answer has no room", "method", r.Method, "path", r.URL.EscapedPath(), "bytes", len(answer.body))
		http.Error(w, "other answers take all the room", http.StatusServiceUnavailable)
	default:
		answer.write(w, r)
	}
}

// read reads the body, if there is one.
func (h *Handler) read(ctx context.Context, into *strings.Builder, w http.ResponseWriter, r *http.Request, arrived *held) error {
	if r.ContentLength == 0 {
		return nil
	}
	_, err := io.Copy(into, &arriving{http.MaxBytesReader(w, r.Body, maxBody), ctx, arrived})
	return err
}

// run runs the handler.
func (h *Handler) run(ctx context.Context, in *app.Instance, r *http.Request, body string) (*response, *Upgrade, error) {
	rq := &request{h: h, in: in, r: r}
	arg := rq.table(body)
	results, err := in.Call(h.c.Pool.Meter(ctx, budget), place(r), in.Fetch(), arg)
	if err != nil {
		return nil, nil, err
	}
	var first lua.LValue = lua.LNil
	if len(results) > 0 {
		first = results[0]
	}
	if ud, ok := first.(*lua.LUserData); ok && rq.upgrade != nil && ud == rq.token {
		return nil, rq.upgrade, nil
	}
	answer, err := readResponse(first)
	return answer, nil, err
}

// place names a request in traces: its path escaped, so that nothing in it is more than text, and cut.
func place(r *http.Request) string {
	p := r.URL.EscapedPath()
	if len(p) > 200 {
		p = p[:200] + "…"
	}
	return r.Method + " " + p
}

// refuse answers for a handler that failed: with a correlation id, under which the log has the details.
func (h *Handler) refuse(w http.ResponseWriter, r *http.Request, err error) {
	b := make([]byte, 8)
	_, _ = rand.Read(b)
	id := hex.EncodeToString(b)
	status, text := http.StatusInternalServerError, "the app failed"
	switch wire.AsError(err).Code {
	case wire.Timeout:
		status, text = http.StatusGatewayTimeout, "the app did not answer in time"
	case wire.Overloaded, wire.Unavailable:
		status, text = http.StatusServiceUnavailable, "no room at the moment"
		w.Header().Set("Retry-After", "1")
	}
	f := failure.Of(err)
	h.c.Log.Error("a request failed", "id", id, "method", r.Method, "path", r.URL.EscapedPath(), "status", status, "error", err, failure.Key, f)
	w.Header().Set("X-Correlation-Id", id)
	if h.c.Explain && strings.Contains(r.Header.Get("Accept"), "text/html") {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.WriteHeader(status)
		_ = f.Page(w, h.c.App, status, id)
		return
	}
	if h.c.Explain {
		text += ": " + f.Terminal()
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, strconv.Itoa(status)+" "+text+" ("+id+")\n")
}
