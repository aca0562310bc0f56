package pool

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"weir/pkg/app"
	"weir/pkg/wire"
)

// So many handlers run at once, 16 times as many have a VM; a further one waits, until its own deadline, for one that
// ends or waits for something itself.
func TestPlaces(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "main.lua"), []byte(`on "fetch" (function() end)`), 0o600); err != nil {
		t.Fatal(err)
	}
	a, err := app.Load(dir, app.Options{})
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		p := New(a, 4, slog.New(slog.DiscardHandler))
		defer p.Close()
		end := make(chan struct{})
		get := func() (*app.Instance, time.Duration, error) {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			start := time.Now()
			in, err := p.Get(ctx)
			return in, time.Since(start), err
		}
		refused := func(what string) {
			t.Helper()
			if _, took, err := get(); took != 5*time.Second || wire.AsError(err).Code != wire.Overloaded {
				t.Errorf("%s: %v after %v", what, err, took)
			}
		}
		given := func(what string) *app.Instance {
			t.Helper()
			in, took, err := get()
			if err != nil || took != 0 {
				t.Fatalf("%s: %v after %v", what, err, took)
			}
			return in
		}
		running := []*app.Instance{given("1"), given("2"), given("3"), given("4")}
		refused("a fifth")
		time.AfterFunc(time.Second, func() { p.Put(running[0], true) })
		in, took, err := get()
		if err != nil || took != time.Second || in != running[0] {
			t.Fatalf("when one ends: %v after %v", err, took)
		}
		var all []*app.Instance
		waits := func(in *app.Instance) {
			go func() { p.Wait(t.Context(), func() { <-end }); p.Put(in, true) }()
			synctest.Wait()
		}
		for _, in := range running {
			waits(in)
		}
		for n := 5; n <= 64; n++ {
			if p.Scarce() != (n > 49) {
				t.Errorf("with %d handlers: scarce is %v", n-1, p.Scarce())
			}
			in := given("while the others wait")
			if n > 60 {
				all = append(all, in)
			} else {
				waits(in)
			}
		}
		for _, in := range all {
			waits(in)
		}
		refused("a sixty-fifth")
		close(end)
		synctest.Wait()
		if n := len(p.free); n != 4 {
			t.Errorf("%d VMs are kept", n)
		}
	})
}
