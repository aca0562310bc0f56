package luavm

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Meter bounds one call: its work in VM instructions, its time by a context, and its memory by the heap watch. It is a
// context that is done when the call is cut, for what Go functions wait on while they serve the call. Work and Built are
// for the goroutine that runs the VM, all other methods for any. Cancel the context given to NewMeter when the call is
// over; that frees the meter.
type Meter struct {
	ctx    context.Context
	budget int64

	work    atomic.Int64
	built   atomic.Int64
	checked atomic.Int64 // score at the last look at the heap
	stopped atomic.Bool
	turn    atomic.Bool // it is a long call, and has one of the turns
	around  func(wait func())

	mu      sync.Mutex // guards cause, derived and cancel
	cause   error
	derived context.Context
	cancel  context.CancelCauseFunc
}

// NewMeter returns a meter that allows budget instructions until ctx is done.
func NewMeter(ctx context.Context, budget int64) *Meter {
	return &Meter{ctx: ctx, budget: budget, around: func(wait func()) { wait() }}
}

// Work charges n instructions for work done in Go. Past the budget the VM raises at its next instruction. Others may run
// meanwhile.
func (m *Meter) Work(n int64) {
	if n <= 0 {
		return
	}
	n = min(n, 1<<40)
	all := m.work.Add(n)
	if all > m.budget {
		m.Cut(ErrBudget)
		return
	}
	m.spent(n, all)
}

// Built charges n bytes that were, or are about to be, built. It may look at the heap, and others may run meanwhile.
func (m *Meter) Built(n int64) {
	if n <= 0 {
		return
	}
	n = min(n, 1<<40)
	all := m.built.Add(n)
	m.watch(n)
	m.spent(all/bytesCost-(all-n)/bytesCost, all/bytesCost)
}

// Spent returns the instructions and bytes charged so far; instructions lag by at most one poll (32).
func (m *Meter) Spent() (work, bytes int64) { return m.work.Load(), m.built.Load() }

// Cut ends the call with err. The first cut counts.
func (m *Meter) Cut(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.cause != nil {
		return
	}
	m.cause = err
	m.stopped.Store(true)
	if m.cancel != nil {
		m.cancel(err)
	}
}

// Err returns why the call must end, nil while it may run: ErrBudget, ErrTimeout, ErrMemory, the context's cause or
// what Cut was given.
func (m *Meter) Err() error {
	if !m.stopped.Load() {
		if m.ctx.Err() == nil {
			return nil
		}
		m.Cut(reason(m.ctx))
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.cause
}

// Done is closed when the call was cut or its context is done. Who asks is about to wait.
func (m *Meter) Done() <-chan struct{} {
	m.EndTurn()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.derived == nil {
		m.derived, m.cancel = context.WithCancelCause(m.ctx)
		if m.cause != nil {
			m.cancel(m.cause)
		}
	}
	return m.derived.Done()
}

// Deadline is the context's.
func (m *Meter) Deadline() (time.Time, bool) { return m.ctx.Deadline() }

// Value is the context's.
func (m *Meter) Value(key any) any { return m.ctx.Value(key) }

// score orders running calls by what they cost: bytes they said they built, and 64 for every instruction, since any may
// allocate.
func (m *Meter) score() int64 { return m.built.Load() + 64*m.work.Load() }

// reason says in our words why ctx is done.
func reason(ctx context.Context) error {
	if outer, ok := ctx.(*Meter); ok {
		return outer.Err()
	}
	err := ctx.Err()
	if err == context.DeadlineExceeded {
		return ErrTimeout
	}
	cause := context.Cause(ctx)
	switch cause {
	case nil:
		return err
	case context.DeadlineExceeded: //nolint:errorlint // a context gives it as it is
		return ErrTimeout
	}
	return cause
}
