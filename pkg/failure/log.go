package failure

import (
	"context"
	"io"
	"log/slog"
	"sync"
)

// terminal is a log for a person: a record's failure stands below its line.
type terminal struct {
	slog.Handler
	mu *sync.Mutex // one record at a time, its lines together
	w  io.Writer
}

// Log gives a text log to w, with each record's Failure over the lines below it. It is safe for concurrent use.
func Log(w io.Writer, level slog.Leveler) slog.Handler {
	return &terminal{slog.NewTextHandler(w, &slog.HandlerOptions{Level: level}), new(sync.Mutex), w}
}

// Handle implements slog.Handler.
func (t *terminal) Handle(ctx context.Context, r slog.Record) error {
	line := slog.NewRecord(r.Time, r.Level, r.Message, r.PC)
	details := ""
	r.Attrs(func(a slog.Attr) bool {
		if f, ok := a.Value.Any().(Failure); ok {
			details = f.Details()
			return true
		}
		line.AddAttrs(a)
		return true
	})
	t.mu.Lock()
	defer t.mu.Unlock()
	err := t.Handler.Handle(ctx, line)
	if details != "" && err == nil {
		_, err = io.WriteString(t.w, details[1:]+"\n")
	}
	return err
}

// WithAttrs implements slog.Handler.
func (t *terminal) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &terminal{t.Handler.WithAttrs(attrs), t.mu, t.w}
}

// WithGroup implements slog.Handler.
func (t *terminal) WithGroup(name string) slog.Handler {
	return &terminal{t.Handler.WithGroup(name), t.mu, t.w}
}
