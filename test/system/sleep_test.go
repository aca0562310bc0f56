package system

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/tools/txtar"

	"weir/pkg/objectid"
	"weir/services/host/hostd"
	"weir/test/testkit"
)

const sleepApp = `
-- main.lua --
local A = object "A" {
    publishes = { put = "public" },
    put = function(state, n)
        state.n = (state.n or 0) + n
        state:publish("put", state.n)
        return state.n
    end,
}
object "B" {
    receives = { ["A:put"] = function(state, event) state.store:set("n", event.data) end },
    watch = function(state) state:follow(A("1"), "put") end,
    n = function(state) return state.store:get("n") end,
}
local Stuck = object "Stuck" { write = function(state) state.store:set("n", 1) end }
object "C" { wait = function(state) Stuck("s"):write() end }
`

// openPaths counts the descriptors of each object file.
func openPaths(t *testing.T) map[string]int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	paths := map[string]int{}
	for _, f := range list {
		if target, err := os.Readlink(filepath.Join("/proc/self/fd", f.Name())); err == nil && strings.Contains(target, "/objects/") {
			paths[target]++
		}
	}
	return paths
}

// openFiles counts the descriptors of object files.
func openFiles(t *testing.T) (n int) {
	t.Helper()
	for _, count := range openPaths(t) {
		n += count
	}
	return n
}

// An idle object sleeps: no file is open, no goroutine is left, and no scratch; the next call or event wakes it.
// spec: OBJ-14
func TestSleep(t *testing.T) {
	testkit.Bubble(t, txtar.Parse([]byte(sleepApp)), hostd.Limits{}, func(t *testing.T, s *testkit.System) {
		s.MustCall("B/1", "watch")
		s.MustCall("A/1", "put", `1`)
		time.Sleep(6 * time.Minute) // warm, and asleep again
		synctest.Wait()
		goroutines := runtime.NumGoroutine()
		if n := openFiles(t); n != 0 {
			t.Fatalf("%d files are open while all sleep", n)
		}
		for i := range 50 {
			s.MustCall(fmt.Sprintf("A/%d", i), "put", `1`)
		}
		if got := s.MustCall("A/7", "put", `1`); got != "2" {
			t.Errorf("scratch of an awake object: %s", got)
		}
		if n := openFiles(t); n < 100 {
			t.Errorf("%d files are open while 51 objects are awake", n)
		}
		time.Sleep(299 * time.Second)
		synctest.Wait()
		if openFiles(t) == 0 {
			t.Error("asleep before 300 s")
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if n := openFiles(t); n != 0 {
			t.Errorf("%d files are open after 309 s", n)
		}
		if n := runtime.NumGoroutine(); n > goroutines+10 { // NATS has one more or less at times; the objects would be 50
			t.Errorf("%d goroutines, %d before", n, goroutines)
		}
		if got := s.MustCall("A/7", "put", `1`); got != "1" {
			t.Errorf("scratch after sleep: %s", got)
		}
		s.MustCall("A/1", "put", `9`)
		time.Sleep(time.Second)
		if got := s.MustCall("B/1", "n"); got != "9" {
			t.Errorf("a sleeping follower got %s", got)
		}
	})
}

// No more objects are awake than may be: the longest idle sleeps first.
// spec: OBJ-14
func TestAwakeLimit(t *testing.T) {
	testkit.Bubble(t, txtar.Parse([]byte(sleepApp)), hostd.Limits{Awake: 10}, func(t *testing.T, s *testkit.System) {
		for i := range 40 {
			s.MustCall(fmt.Sprintf("A/%d", i), "put", `1`)
			time.Sleep(10 * time.Millisecond)
		}
		synctest.Wait()
		if n := openFiles(t); n > 30 {
			t.Errorf("%d files are open with at most 10 objects awake", n)
		}
		if got := s.MustCall("A/39", "put", `1`); got != "2" {
			t.Errorf("the last one was put to sleep: %s", got)
		}
		if got := s.MustCall("A/0", "put", `1`); got != "1" {
			t.Errorf("the first one was left awake: %s", got)
		}
	})
}

// While more objects are busy than may be awake, all of them are; as they end, the longest idle sleep.
// spec: OBJ-14
func TestAwakeLimitWhileBusy(t *testing.T) {
	testkit.Bubble(t, txtar.Parse([]byte(sleepApp)), hostd.Limits{Awake: 10}, func(t *testing.T, s *testkit.System) {
		gate := make(chan struct{})
		s.Barrier = func(id objectid.ID, sync func() error) error {
			if id.Class == "Stuck" {
				<-gate
			}
			return sync()
		}
		s.Restart()
		var wg sync.WaitGroup
		for i := range 30 {
			wg.Go(func() {
				if _, err := s.Call(fmt.Sprintf("C/%d", i), "wait"); err != nil {
					t.Errorf("C/%d: %v", i, err)
				}
			})
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if n := len(openPaths(t)); n < 30 {
			t.Errorf("%d files are open while 30 objects wait", n)
		}
		close(gate)
		wg.Wait()
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if n := openFiles(t); n == 0 || n > 30 { // three for each
			t.Errorf("%d files are open with at most 10 objects awake", n)
		}
	})
}

// An awake object's database is open once, whatever is asked of the object; the log beside it has two descriptors,
// SQLite's own and the one that is synced, and both go with the connection.
func TestOneDescriptor(t *testing.T) {
	testkit.Bubble(t, txtar.Parse([]byte(sleepApp)), hostd.Limits{}, func(t *testing.T, s *testkit.System) {
		look := func(when string) {
			t.Helper()
			databases := 0
			for path, n := range openPaths(t) {
				if database := strings.HasSuffix(path, ".db"); database && n != 1 || n > 2 {
					t.Errorf("%s: %s is open %d times", when, path, n)
				} else if database {
					databases++
				}
			}
			if databases != 2 {
				t.Errorf("%s: %d databases are open", when, databases)
			}
		}
		for _, when := range []string{"new", "woken", "woken again"} {
			s.MustCall("B/1", "watch")
			for i := range 100 {
				s.MustCall("A/1", "put", `1`)
				_, _ = s.Call("A/1", "put", `"no number"`) // fails: its VM is thrown away
				if i%10 == 0 {
					s.Edges("A/1")
					look(when)
				}
			}
			time.Sleep(time.Second)
			look(when + ", after the events")
			time.Sleep(6 * time.Minute)
			synctest.Wait()
			if left := openPaths(t); len(left) > 0 {
				t.Errorf("%s: asleep, and open are %v", when, left)
			}
		}
	})
}
