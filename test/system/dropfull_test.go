package system

import (
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"weir/services/host/hostd"
	"weir/test/testkit"
)

const dropFullApp = `
-- main.lua --
local P = objects "P"
object "P" {
    migrations = "m",
    publishes = { e = "public" },
    say = function(state) state:publish("e", ("x"):rep(250000)) end,
    fill = function(state, bytes) state.sql:exec("INSERT INTO t VALUES (?)", { ("y"):rep(bytes) }) end,
}
object "F" {
    receives = { ["P:e"] = function(state, event) error("on purpose") end },
    watch = function(state) state:follow(P("p"), "e") end,
}
-- m/1.sql --
CREATE TABLE t (x TEXT);
`

// An edge that failed too often goes, and is recorded with its event, though the app has filled the publisher's file.
// spec: DLV-8, SQL-5
func TestDropFromAFullFile(t *testing.T) {
	testkit.Bubble(t, txtar.Parse([]byte(dropFullApp)), hostd.Limits{Database: 1 << 20}, func(t *testing.T, s *testkit.System) {
		s.MustCall("F/f", "watch")
		s.MustCall("P/p", "say")
		for _, bytes := range []string{"20000", "500"} {
			for n := 0; ; n++ {
				_, err := s.Call("P/p", "fill", bytes)
				if err != nil && strings.HasPrefix(err.Error(), "database full: ") {
					break
				}
				if err != nil || n == 10_000 {
					t.Fatalf("the file is not full: %v", err)
				}
			}
		}
		time.Sleep(5 * time.Minute)
		out, err := s.Call("P/p", hostd.MethodEdges)
		if err != nil || !strings.Contains(out[0], `"edges":[]`) || !strings.Contains(out[0], `"attempts":8`) || len(out[0]) < 250_000 {
			t.Errorf("%.300s %v", out, err)
		}
	})
}
