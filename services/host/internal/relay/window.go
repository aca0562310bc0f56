package relay

import (
	"weir/pkg/edge"
)

// window bounds the events that are kept in memory between the commit and the publish; the rest is read from the log.
const window = 4 << 20

func (r *Relay) push(rows []edge.Event) {
	for _, e := range rows {
		gap := len(r.rows) > 0 && r.rows[len(r.rows)-1].Seq+1 != e.Seq
		if r.size > window || gap && r.status.Trimmed < e.Seq-1 {
			return // the rest comes from the log
		}
		r.rows = append(r.rows, e)
		r.size += len(e.Data) + 64
	}
}

// take gives the event to publish next from the window or the log; ok is false when there is none.
func (r *Relay) take(seq, head uint64) (e edge.Event, ok bool, err error) {
	for try := 0; ; try++ {
		r.mu.Lock()
		for len(r.rows) > 0 && r.rows[0].Seq < seq {
			r.size -= len(r.rows[0].Data) + 64
			r.rows = r.rows[1:]
		}
		if len(r.rows) > 0 && r.rows[0].Seq == seq {
			e = r.rows[0]
			r.rows, r.size = r.rows[1:], r.size-len(e.Data)-64
			r.mu.Unlock()
			return e, true, nil
		}
		forgotten := seq <= r.status.Trimmed
		r.mu.Unlock()
		if seq > head || try > 0 || forgotten {
			return e, false, nil
		}
		loaded, err := r.c.Source.Rows(r.ctx, seq-1, window/4)
		if err != nil {
			return e, false, err
		}
		r.mu.Lock()
		r.rows, r.size = nil, 0
		for _, row := range loaded {
			r.rows = append(r.rows, row)
			r.size += len(row.Data) + 64
		}
		r.mu.Unlock()
	}
}

// skipForgotten goes past events that are neither in the log nor in the window: nobody was to get them.
func (r *Relay) skipForgotten(s Status) {
	r.mu.Lock()
	defer r.mu.Unlock()
	first := s.Trimmed + 1
	if len(r.rows) > 0 {
		first = min(first, r.rows[0].Seq)
	}
	r.next = max(r.next, first)
}
