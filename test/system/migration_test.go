package system

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/tools/txtar"

	"weir/services/host/hostd"
	"weir/test/testkit"
)

const migrationApp = `
-- main.lua --
object "A" {
    migrations = "migrations/A",
    rows = function(state)
        local out = {}
        for i, r in ipairs(state.sql:query("SELECT x FROM t ORDER BY rowid")) do out[i] = r.x end
        return out
    end,
    remind = function(state) state:set_alarm("10s") end,
    reminded = function(state) return state.store:get("reminded") or 0 end,
    hooks = { alarm = function(state) state.store:set("reminded", (state.store:get("reminded") or 0) + 1) end },
}
`

// An alarm that is due while the object cannot be brought up to the app, for as long as that may take, is not given up: its
// hook has not failed. It rings once that is mended.
// spec: ALRM-1, ALRM-2
func TestAlarmWaitsForMigrations(t *testing.T) {
	dir := t.TempDir()
	testkit.EmptyPools()
	synctest.Test(t, func(t *testing.T) {
		with := func(files string, do func(s *testkit.System)) {
			removeMigrations(t, dir)
			s := testkit.Start(t, dir, txtar.Parse([]byte(migrationApp+files)), hostd.Limits{})
			defer s.Stop()
			do(s)
		}
		with(one, func(s *testkit.System) { s.MustCall("A/a", "remind") })
		with(one+"-- migrations/A/2.sql --\nINSERT INTO missing VALUES (1);\n", func(*testkit.System) { time.Sleep(time.Hour) })
		with(one+two, func(s *testkit.System) {
			time.Sleep(time.Minute)
			if got := s.MustCall("A/a", "reminded"); got != "1" {
				t.Errorf("the alarm rang %s times", got)
			}
		})
	})
}

// TestChangedMigrations deploys an app again and again over the same data, with other migrations.
func TestChangedMigrations(t *testing.T) {
	// spec: SQL-6
	steps := []struct {
		name   string
		files  string
		result string // of A/old, which has lived through all before
		fresh  string // of an object made now, where that differs
	}{
		{name: "the first", files: one + three, result: `["one","three"]`},
		{name: "a new file behind the applied ones", files: one + three + four, result: `["one","three","four"]`},
		{name: "a new file before an applied one", files: one + two + three + four, result: "migration failed: 2.sql", fresh: `["one","two","three","four"]`},
		{name: "without it again", files: one + three + four, result: `["one","three","four"]`},
		{name: "an applied file that changed", files: one + strings.ReplaceAll(three, "three", "drei") + four, result: "migration failed: 3.sql", fresh: `["one","drei","four"]`},
		{name: "a failing one", files: one + three + four + "-- migrations/A/5.sql --\nINSERT INTO t VALUES ('half');\nINSERT INTO missing VALUES (1);\n", result: "migration failed: 5.sql"},
		{name: "the same, mended", files: one + three + four + "-- migrations/A/5.sql --\nINSERT INTO t VALUES ('five');\n", result: `["one","three","four","five"]`},
	}
	for i, step := range steps {
		// A script of its own for each way through the steps: the data are those that the steps before left.
		t.Run(step.name, func(t *testing.T) {
			dir := t.TempDir()
			testkit.EmptyPools()
			synctest.Test(t, func(t *testing.T) {
				for _, s := range steps[:i] {
					deploy(t, dir, s.files, "A/old")
				}
				check(t, deploy(t, dir, step.files, "A/old"), step.result)
				fresh := step.fresh
				if fresh == "" {
					fresh = step.result
				}
				check(t, deploy(t, dir, step.files, "A/fresh"), fresh)
			})
		})
	}
}

const (
	one   = "-- migrations/A/1.sql --\nCREATE TABLE t (x TEXT);\nINSERT INTO t VALUES ('one');\n"
	two   = "-- migrations/A/2.sql --\nINSERT INTO t VALUES ('two');\n"
	three = "-- migrations/A/3.sql --\nINSERT INTO t VALUES ('three');\n"
	four  = "-- migrations/A/4.sql --\nINSERT INTO t VALUES ('four');\n"
)

// deploy starts the app with these migrations, asks an object for its rows, and stops.
func deploy(t *testing.T, dir, files, id string) string {
	t.Helper()
	removeMigrations(t, dir)
	s := testkit.Start(t, dir, txtar.Parse([]byte(migrationApp+files)), hostd.Limits{})
	defer s.Stop()
	out, err := s.Call(id, "rows")
	if err != nil {
		return err.Error()
	}
	return out[0]
}

func check(t *testing.T, got, want string) {
	t.Helper()
	if code, file, ok := strings.Cut(want, ": "); ok {
		if !strings.HasPrefix(got, code+": ") || !strings.Contains(got, file) {
			t.Fatalf("got %s, want %s that names %s", got, code, file)
		}
	} else if got != want {
		t.Fatalf("got %s, want %s", got, want)
	}
}

// removeMigrations removes the migrations of the deployment before.
func removeMigrations(t *testing.T, dir string) {
	t.Helper()
	if err := os.RemoveAll(filepath.Join(dir, "app", "migrations")); err != nil {
		t.Fatal(err)
	}
}
