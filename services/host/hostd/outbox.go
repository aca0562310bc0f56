package hostd

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"weir/pkg/bus"
	"weir/pkg/crashpoint"
	"weir/pkg/edge"
	"weir/pkg/objectid"
	"weir/pkg/wire"
)

// outbox gathers receipts and the ends of logs, and sends them about once a second, the newest of each. What is lost
// does no harm: it is asked for.
type outbox struct {
	client *bus.Client
	log    *slog.Logger

	mu       sync.Mutex // guards what follows
	receipts map[receiptKey]edge.Receipt
	ends     []wire.End
}

type receiptKey struct {
	publisher objectid.ID
	follower  string
}

// batch bounds the entries of one message.
const batch = 1000

func newOutbox(client *bus.Client, log *slog.Logger) *outbox {
	return &outbox{client: client, log: log, receipts: map[receiptKey]edge.Receipt{}}
}

func (o *outbox) receipt(r edge.Receipt) {
	o.mu.Lock()
	o.receipts[receiptKey{r.Publisher, r.Peer}] = r
	o.mu.Unlock()
}

func (o *outbox) end(e wire.End) {
	o.mu.Lock()
	o.ends = append(o.ends, e)
	o.mu.Unlock()
}

// run sends until ctx ends.
func (o *outbox) run(ctx context.Context) {
	t := time.NewTicker(time.Second)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			o.flush()
		}
	}
}

func (o *outbox) flush() {
	o.mu.Lock()
	receipts, ends := o.receipts, o.ends
	o.receipts, o.ends = map[receiptKey]edge.Receipt{}, nil
	o.mu.Unlock()
	if len(receipts) == 0 && len(ends) == 0 {
		return
	}
	if len(receipts) > 0 {
		crashpoint.Reached(crashpoint.Receipt)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	token, err := o.client.Owner(ctx)
	if err != nil {
		o.log.Debug("receipts were not sent", "error", err)
		return
	}
	send := func(subject string, message any) {
		data, err := wire.Encode(message)
		if err == nil {
			err = o.client.NATS.Publish(subject, data)
		}
		if err != nil {
			o.log.Debug("receipts were not sent", "error", err)
		}
	}
	s := o.client.Subjects
	var out wire.ReceiptBatch
	for _, r := range receipts {
		if out.Receipts = append(out.Receipts, r); len(out.Receipts) == batch {
			send(s.Receipts(0, token), out)
			out.Receipts = nil
		}
	}
	if len(out.Receipts) > 0 {
		send(s.Receipts(0, token), out)
	}
	for len(ends) > 0 {
		n := min(batch, len(ends))
		send(s.Ends(0, token), wire.EndBatch{Ends: ends[:n]})
		ends = ends[n:]
	}
}
