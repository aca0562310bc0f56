package object

import (
	"testing"
	"time"

	"weir/pkg/app"
	"weir/pkg/edge"
	"weir/pkg/objectid"
	"weir/pkg/wire"
)

// sentBack is a delivery's message that counts what becomes of it.
type sentBack struct{ naks, others int }

func (m *sentBack) Ack() error        { m.others++; return nil }
func (m *sentBack) Term() error       { m.others++; return nil }
func (m *sentBack) InProgress() error { m.others++; return nil }
func (m *sentBack) Nak(wait time.Duration) error {
	if wait == time.Second {
		m.naks++
	}
	return nil
}

// Deliveries of 16 MiB wait at an object; what comes then is sent back for a second, whoever it is from, and comes again.
// Calls have their own bound.
func TestWaitingDeliveriesAreBounded(t *testing.T) {
	follower := objectid.ID{Class: "F", Name: "f"}
	r := New(Config{App: &app.App{Classes: map[string]*app.Class{"F": {Methods: map[string]bool{"m": true}}}}})
	r.objects[follower] = &Object{r: r, id: follower, running: true} // its turn does not end
	var m sentBack
	deliver := func(publisher string) int {
		before := m.naks
		r.Deliver(follower, &Incoming{Delivery: edge.Delivery{Event: edge.Event{Publisher: objectid.ID{Class: "P", Name: publisher}, Topic: "e", Data: make([]byte, 256<<10)}}, Message: &m})
		return m.naks - before
	}
	taken := 0
	for deliver("p") == 0 {
		taken++
	}
	if size := taken * (256<<10 + 256); size < 16<<20 || size > 16<<20+256<<10+256 {
		t.Errorf("%d deliveries wait, %d bytes", taken, size)
	}
	if deliver("q") != 1 || m.others != 0 {
		t.Errorf("%+v", m)
	}
	r.Call(wire.CallRequest{To: follower.String(), Method: "m"}, func(reply wire.CallReply) { t.Errorf("a call was answered: %+v", reply) })
}
