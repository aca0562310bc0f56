package gatewayd

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"weir/pkg/app"
	"weir/pkg/objectid"
	"weir/pkg/wire"
	"weir/services/gateway/internal/pool"
)

// 512 handlers wait for one object, and one that comes then stands in line: for all its time while there is room, two
// seconds when there is little.
func TestLineOfAnObject(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "main.lua"), []byte(`on "fetch" (function() end)`), 0o600); err != nil {
		t.Fatal(err)
	}
	a, err := app.Load(dir, app.Options{})
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		p := pool.New(a, 1, slog.New(slog.DiscardHandler)) // 16 handlers have a VM
		defer p.Close()
		c := &caller{pool: p, lines: map[objectid.ID]*line{}}
		stuck := objectid.ID{Class: "A", Name: "stuck"}
		joins := func(id objectid.ID) (time.Duration, error) {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			start := time.Now()
			l := c.join(id)
			err := c.line(ctx, l, id)
			if err != nil {
				c.leave(id, l)
			}
			return time.Since(start), err
		}
		refused := func(after time.Duration, text string) {
			t.Helper()
			took, err := joins(stuck)
			if took != after || wire.AsError(err).Code != wire.Overloaded || !strings.Contains(err.Error(), text) {
				t.Errorf("%v after %v, want %q after %v", err, took, text, after)
			}
		}
		for n := range 512 {
			if took, err := joins(stuck); took != 0 || err != nil {
				t.Fatalf("handler %d: %v after %v", n+1, err, took)
			}
		}
		refused(10*time.Second, "in time")
		if took, err := joins(objectid.ID{Class: "A", Name: "other"}); took != 0 || err != nil {
			t.Errorf("for another object: %v after %v", err, took)
		}
		end := make(chan struct{})
		defer close(end)
		for range 13 { // more than three quarters of the room
			in, err := p.Get(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			go func() { p.Wait(t.Context(), func() { <-end }); p.Put(in, true) }()
			synctest.Wait()
		}
		refused(2*time.Second, "512 handlers")
	})
}
