package luavm

import (
	"runtime"
	"runtime/metrics"
	"sync"
	"sync/atomic"
)

const (
	watchStep     = 1 << 20 // score between two looks of one call: 1 MiB built or 16k instructions
	watchPatience = 64      // looks granted to a cut call to unwind before another is cut
)

// heapWatch cuts the call that has spent the most when the process's heap passes a limit (BOX-3). The calls look
// themselves while they run; there is no goroutine.
type heapWatch struct {
	limit atomic.Uint64

	mu      sync.Mutex // guards running
	running map[*Meter]int

	looking  sync.Mutex // held by the one call that looks; others go on
	victim   *Meter     // the last call cut, while it has not ended; guarded by looking
	patience int
}

var heap = heapWatch{running: map[*Meter]int{}}

// WatchHeap sets the heap limit of the process in bytes; 0 turns the watch off. Past it, after a garbage collection that
// did not help, the running call that has spent the most is cut with ErrMemory.
func WatchHeap(limit uint64) { heap.limit.Store(limit) }

func (w *heapWatch) enter(m *Meter) {
	w.mu.Lock()
	w.running[m]++
	w.mu.Unlock()
}

func (w *heapWatch) leave(m *Meter) {
	w.mu.Lock()
	if w.running[m]--; w.running[m] <= 0 {
		delete(w.running, m)
	}
	w.mu.Unlock()
}

func (w *heapWatch) isRunning(m *Meter) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.running[m] > 0
}

// watch looks at the heap when the call has spent enough since it last did; ahead is what it is about to allocate.
func (m *Meter) watch(ahead int64) {
	limit := heap.limit.Load()
	if limit == 0 {
		return
	}
	score := m.score()
	if last := m.checked.Load(); score-last < watchStep || !m.checked.CompareAndSwap(last, score) {
		return
	}
	if heap.looking.TryLock() {
		defer heap.looking.Unlock()
		heap.look(limit, uint64(ahead))
	}
}

func (w *heapWatch) look(limit, ahead uint64) {
	if heapBytes()+ahead <= limit {
		return
	}
	if w.victim != nil && w.isRunning(w.victim) && w.patience > 0 {
		w.patience--
		return
	}
	w.victim = nil
	runtime.GC()
	if heapBytes()+ahead <= limit {
		return
	}
	w.mu.Lock()
	var most *Meter
	for m := range w.running {
		if !m.stopped.Load() && (most == nil || m.score() > most.score()) {
			most = m
		}
	}
	w.mu.Unlock()
	if most != nil {
		most.Cut(ErrMemory)
		w.victim, w.patience = most, watchPatience
	}
}

func heapBytes() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
