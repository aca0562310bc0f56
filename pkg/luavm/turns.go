package luavm

import "runtime"

// Go's scheduler takes the processor from a goroutine after 10 ms, and looks at sockets as rarely while none is idle. Where
// a few calls compute, everybody else's call or event would wait as long at each of its hops. So a call lets others run
// every 0.1 ms, and those that compute for long share all processors but one.
const (
	yieldShift = 12      // a call lets others run each time that it has spent 1<<12
	longAfter  = 1 << 16 // what a call spends before it is a long one: some 2 ms
	longShift  = 14      // the next long call's turn comes after 1<<14
	bytesCost  = 64      // bytes built that cost one instruction here
)

// turns has a token for each long call whose turn it is.
var turns = make(chan struct{}, max(1, runtime.GOMAXPROCS(0)-1))

// spent lets others run if it is time: a call has just spent n and thereby all.
func (m *Meter) spent(n, all int64) {
	if all>>yieldShift != (all-n)>>yieldShift {
		m.yield(n, all)
	}
}

func (m *Meter) yield(n, all int64) {
	runtime.Gosched()
	if all < longAfter || m.turn.Load() && all>>longShift == (all-n)>>longShift {
		return
	}
	m.EndTurn()
	select {
	case turns <- struct{}{}:
		m.turn.Store(true)
	default:
		m.around(func() {
			select {
			case turns <- struct{}{}:
				m.turn.Store(true)
			case <-m.Done():
			}
		})
	}
}

// EndTurn gives the turn of a long call away: it ends, waits for something, or begins what is long and lets nobody run
// meanwhile. Its next turn comes when it computes again. Done does the same.
func (m *Meter) EndTurn() {
	if m.turn.Load() && m.turn.CompareAndSwap(true, false) {
		<-turns
	}
}

// WaitWith makes around run the waits of a long call for its turn, so that what it holds may serve others meanwhile. Call
// it before the call begins.
func (m *Meter) WaitWith(around func(wait func())) { m.around = around }
