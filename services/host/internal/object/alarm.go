package object

import (
	"context"
	"time"

	"weir/pkg/crashpoint"
	"weir/pkg/edge"
	"weir/pkg/failure"
	"weir/services/host/internal/objectdb"
)

// alarmItem is the turn of an alarm that may be due.
type alarmItem struct{}

func (alarmItem) counted() bool { return false }

func (alarmItem) run(o *Object, a *activation, err error) {
	if err != nil {
		o.r.c.Log.Error("an alarm cannot run: the object cannot be opened; it is tried again in a minute", "object", o.id.String(), "error", err)
		o.r.alarms.Set(o.id, time.Now().Add(time.Minute).UnixMilli())
		return
	}
	a.ring()
	o.forgetNew()
}

// ring runs the alarm hook if the alarm is due. The alarm is removed in the hook's own transaction, before the hook,
// which may set the next one.
func (a *activation) ring() {
	alarm, ok, err := a.db.Alarm()
	if err != nil {
		a.r.c.Log.Error("the alarm cannot be read; it is tried again in a minute", "object", a.id.String(), "error", err)
		a.r.alarms.Set(a.id, time.Now().Add(time.Minute).UnixMilli())
		return
	}
	if !ok {
		a.alarmDue = 0
		if a.out.wait(context.Background()) == nil {
			a.settle()
		}
		return
	}
	a.alarmDue = alarm.Next
	if alarm.Next > now() {
		a.r.alarms.Set(a.id, alarm.Next)
		return
	}
	fn := a.class.Hooks["alarm"]
	a.out.room() // the hook's time begins when the disk has caught up
	ctx, cancel := context.WithTimeout(a.r.base, a.r.c.Limits.Run)
	defer cancel()
	ran := false
	err = a.transact(ctx, []string{a.id.String()}, func(t *turn) error {
		if err := a.db.ClearAlarm(); err != nil {
			return err
		}
		t.alarm, t.due, ran = true, 0, true
		crashpoint.Reached(crashpoint.AlarmFired)
		if !fn {
			return nil // the app no longer has the hook
		}
		_, err := a.lua(t, " hooks.alarm", a.in.Function(a.id.Class, "hooks", "alarm"))
		return err
	})
	if err == nil {
		if a.alarmDue == 0 && a.out.wait(context.Background()) == nil {
			a.settle()
		}
		return
	}
	if a.r.base.Err() != nil {
		return // the host stops: the alarm is in the file, and rings after the start
	}
	if !ran || !a.r.c.Client.NATS.IsConnected() {
		// The object could not be brought up to the app, or NATS is away and with it whom the hook calls: nothing is counted.
		a.r.c.Log.Warn("an alarm could not ring; it is tried again in 5 s", "object", a.id.String(), "error", err)
		a.r.alarms.Set(a.id, time.Now().Add(again).UnixMilli())
		return
	}
	alarm.Count++
	alarm.Error = short(err.Error(), 2000)
	alarm.Next = now() + edge.Backoff(min(alarm.Count, edge.MaxAttempts))
	given := alarm.Count >= edge.MaxAttempts
	a.r.c.Log.Warn("an alarm hook failed", "object", a.id.String(), "attempt", alarm.Count, "error", err, failure.Key, failure.Of(err))
	if given {
		a.r.c.Log.Error("an alarm was given up: its hook failed too often", "object", a.id.String(), "attempts", alarm.Count, "error", err)
	}
	a.rearm(alarm, given)
}

// rearm keeps a failed attempt and sets the clock for the next.
func (a *activation) rearm(alarm objectdb.Alarm, given bool) {
	if err := a.small(func() error { return a.db.SetAlarm(alarm, given) }); err != nil {
		a.r.c.Log.Error("a failed alarm was not counted; it rings again", "object", a.id.String(), "error", err)
		given = false
	}
	a.alarmDue = alarm.Next
	if given {
		a.alarmDue = 0
		if a.out.wait(context.Background()) == nil {
			a.settle()
		}
		return
	}
	a.r.alarms.Set(a.id, alarm.Next)
}
