package luavm

import (
	"context"
	"time"
)

// pollEvery is how many instructions pass between looks at the budget, the context and the heap.
const pollEvery = 32

var (
	closed = func() chan struct{} { c := make(chan struct{}); close(c); return c }()
	idle   = func() *Meter {
		m := NewMeter(context.Background(), 0)
		m.Cut(ErrIdle)
		return m
	}()
)

// poll is the context of a VM's threads. The VM asks for Done before every instruction, which makes it the place to
// count. Only the goroutine that runs the VM touches it.
type poll struct {
	m       *Meter
	left    int64 // instructions until the next look
	quantum int64 // what left started from
}

// use makes m the meter that counts and returns the one before.
func (p *poll) use(m *Meter) *Meter {
	p.flush()
	p.m.EndTurn()
	old := p.m
	p.m = m
	p.left, p.quantum = 1, 1
	return old
}

func (p *poll) flush() {
	if used := p.quantum - p.left; used > 0 {
		p.m.spent(used, p.m.work.Add(used))
	}
	p.quantum = p.left
}

func (p *poll) Done() <-chan struct{} {
	p.left--
	if p.left > 0 && !p.m.stopped.Load() {
		return nil
	}
	return p.look()
}

func (p *poll) look() <-chan struct{} {
	m := p.m
	p.flush()
	if !m.stopped.Load() {
		select {
		case <-m.ctx.Done():
			m.Cut(reason(m.ctx))
		default:
			m.watch(0)
		}
	}
	rest := m.budget - m.work.Load()
	if rest < 0 {
		m.Cut(ErrBudget)
	}
	if m.stopped.Load() {
		p.left, p.quantum = 0, 0
		return closed
	}
	p.left = min(pollEvery, rest+1)
	p.quantum = p.left
	return nil
}

func (p *poll) Err() error                  { return p.m.Err() }
func (p *poll) Deadline() (time.Time, bool) { return p.m.Deadline() }
func (p *poll) Value(any) any               { return nil }
