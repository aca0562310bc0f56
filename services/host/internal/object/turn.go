package object

import (
	"context"
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"time"

	lua "github.com/yuin/gopher-lua"

	"weir/pkg/crashpoint"
	"weir/pkg/edge"
	"weir/pkg/luavm"
	"weir/pkg/wire"
	"weir/services/host/internal/objectdb"
	"weir/services/host/internal/wake"
)

// turn is one transaction with app code in it.
type turn struct {
	ctx        context.Context
	meter      *luavm.Meter
	now        int64
	chain      []string // those whose calls wait for this one, this object last
	rows       []edge.Event
	edges      bool  // edges changed
	alarm      bool  // the alarm was set or cleared
	due        int64 // to this; 0: none
	answers    []heard
	delivery   bool  // of an event: only its receipt waits for the barrier
	attempting *link // whose event it is
}

// heard is an answer that came while the turn ran: it stands even if the turn does not.
type heard struct {
	publisher string
	answer    edge.Answer
	c         edge.Cursor // before it
	pos       uint64
}

// transact runs app code as one transaction: begin, migrations and init if the object is new, do, commit. On an error
// nothing of it is left, in the file or in the VM. ctx bounds it.
func (a *activation) transact(ctx context.Context, chain []string, do func(t *turn) error) error {
	a.out.room()
	if err := a.out.broken(); err != nil {
		return wire.Errorf(wire.OutcomeUnknown, "%v", err)
	}
	if _, err := a.instance(); err != nil {
		return wire.AsError(err)
	}
	t := &turn{ctx: ctx, meter: luavm.NewMeter(ctx, a.r.c.Limits.Budget), now: time.Now().UnixMilli(), chain: chain}
	err := a.db.Begin(ctx)
	if err == nil {
		a.t = t
		if err = a.prepare(t); err == nil {
			err = do(t)
		}
		if end, ok := ctx.Deadline(); err == nil && ok && !time.Now().Before(end) {
			err = luavm.ErrTimeout // noticed by nothing in the code itself
		}
		if err == nil && a.db.Ended() {
			err = wire.Errorf(wire.BadSQL, "SQLite ended the transaction; nothing of the call was kept")
		}
		if err == nil {
			err = a.expect(t)
		}
		a.t = nil
		wrote := false
		if err == nil {
			wrote, err = a.db.Commit()
		} else if bad := a.db.Rollback(); bad != nil {
			a.r.c.Log.Error("a rollback failed", "object", a.id.String(), "error", bad)
			a.migrated = false
		}
		if err == nil {
			a.migrated = true
			if t.delivery {
				crashpoint.Reached(crashpoint.Handled)
			} else if wrote {
				crashpoint.Reached(crashpoint.Committed)
			}
			a.committed(t, wrote)
			a.hear(t, true)
			return nil
		}
	}
	a.migrated = a.migrated && !errors.Is(err, wire.MigrationFailed)
	a.dropVM()
	a.hear(t, false)
	return wire.AsError(objectdb.Cut(err))
}

// prepare brings the object up to what the app expects: its migrations, and init once ever.
func (a *activation) prepare(t *turn) error {
	if a.migrated && a.db.Initialised() {
		return nil
	}
	all := make([]objectdb.Migration, len(a.class.Migrations))
	for i, m := range a.class.Migrations {
		all[i] = objectdb.Migration{Name: m.Name, SQL: m.SQL}
	}
	if err := a.db.Migrate(all, t.now); err != nil {
		return err
	}
	if a.db.Initialised() {
		return nil
	}
	if fn := a.in.Function(a.id.Class, "hooks", "init"); fn != nil {
		if _, err := a.lua(t, " hooks.init", fn); err != nil {
			return err
		}
	}
	return a.db.SetInitialised()
}

// lua calls one of the class's functions, named so in traces, with state and further arguments.
func (a *activation) lua(t *turn, name string, fn *lua.LFunction, args ...lua.LValue) ([]lua.LValue, error) {
	return a.in.Call(t.meter, a.id.String()+name, fn, append([]lua.LValue{a.state.value}, args...)...)
}

// expect writes to the wake list what the commit is about to make true.
func (a *activation) expect(t *turn) error {
	var e wake.Entry
	if len(t.rows) > 0 && !a.listed && a.db.Edges.Durable() {
		e.Events = true
	}
	if t.alarm {
		e.Due = t.due
	}
	if e == (wake.Entry{}) {
		return nil
	}
	crashpoint.Reached(crashpoint.WakeBefore)
	if err := a.r.c.Wake.Expect(a.id, e); err != nil {
		return wire.Errorf(wire.Unavailable, "%v", err)
	}
	crashpoint.Reached(crashpoint.WakeAfter)
	a.listed = a.listed || e.Events
	return nil
}

// committed sends on what the turn's commit made true, once it is durable.
func (a *activation) committed(t *turn, wrote bool) {
	switch {
	case wrote && t.delivery && len(t.rows) == 0 && !t.alarm:
		a.out.commitLazy()
	case wrote:
		a.out.commit()
	}
	if t.alarm {
		a.alarmDue = t.due
		id, due := a.id, t.due
		a.out.leave(func(err error) {
			if err != nil { // nobody knows what the file holds: it is opened anew and looked up
				due = time.Now().Add(again).UnixMilli()
			}
			a.r.alarms.Set(id, due)
		})
	}
	a.stale = a.stale || t.edges
	e := &a.db.Edges
	followed := len(e.Peers) > 0
	for i := range t.rows {
		row := &t.rows[i]
		if followed {
			row.Number = e.Number
			row.Last = make(map[string]uint64, len(a.last))
			for topic, seq := range a.last {
				row.Last[topic] = seq
			}
		}
		a.last[row.Topic] = row.Seq
	}
	switch {
	case len(t.rows) > 0 && (followed || e.Head > e.Trimmed):
		a.tellRelay(t.rows)
	case t.edges && e.Head > e.Trimmed:
		a.tellRelay(nil)
	}
}

// small runs a transaction of the platform's own, without app code.
func (a *activation) small(do func() error) error {
	if a.db.New() {
		return nil
	}
	a.out.room()
	if err := a.out.broken(); err != nil {
		return err
	}
	if err := a.db.Begin(context.Background()); err != nil {
		return err
	}
	if err := do(); err != nil {
		return errors.Join(err, a.db.Rollback())
	}
	wrote, err := a.db.Commit()
	if wrote && err == nil {
		a.out.commit()
	}
	return err
}

// source is the publisher's object as its relay sees it.
type source Object

// Rows implements relay.Source.
func (s *source) Rows(ctx context.Context, after uint64, maxBytes int) (rows []edge.Event, err error) {
	o := (*Object)(s)
	bad := o.ask(ctx, func(a *activation, done func(error)) {
		size := 0
		e := a.db.Rows(after, func(e edge.Event) bool {
			rows = append(rows, e)
			size += len(e.Data) + 64
			return size < maxBytes
		})
		a.out.leave(func(barrier error) { done(errors.Join(e, barrier)) })
	})
	return rows, bad
}

// NewToken implements relay.Source.
func (s *source) NewToken(ctx context.Context) (token string, err error) {
	o := (*Object)(s)
	token = newToken()
	err = o.ask(ctx, func(a *activation, done func(error)) {
		e := a.small(func() error {
			a.db.SetToken(token)
			return nil
		})
		a.out.leave(func(barrier error) { done(errors.Join(e, barrier)) })
	})
	return token, err
}

// Relayed implements relay.Source.
func (s *source) Relayed() {
	(*Object)(s).later(func(a *activation) {
		if !a.db.Edges.Durable() {
			a.trim()
		}
	})
}

func newToken() string {
	b := make([]byte, 6)
	for i := range b {
		b[i] = byte(rand.IntN(256))
	}
	return hex.EncodeToString(b)
}

// ask runs work in the lane between calls and waits for its end.
func (o *Object) ask(ctx context.Context, work func(a *activation, done func(error))) error {
	return o.question(ctx, work)()
}

// question queues work for the lane between calls; answer waits for its end.
func (o *Object) question(ctx context.Context, work func(a *activation, done func(error))) (answer func() error) {
	end := make(chan error, 1)
	o.mu.Lock()
	o.control = append(o.control, func(a *activation) {
		if a == nil {
			end <- errors.New("the object cannot be opened")
			return
		}
		if ctx.Err() == nil {
			work(a, func(err error) { end <- err })
		}
	})
	o.start()
	o.mu.Unlock()
	return func() error {
		select {
		case err := <-end:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
