package system

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"weir/test/testkit"
)

const droppedApp = `
-- main.lua --
local P = object "P" { publishes = { e = "public" }, say = function(state, d) state:publish("e", d) end }
object "Bad" {
    receives = { ["P:e"] = function(state, event) error("on purpose") end },
    watch = function(state) state:follow(P("p"), "e") end,
}
`

// An edge that was dropped is counted by the publisher's class, and its follower, event and last error are in the log.
// spec: DLV-8
func TestDroppedEdgeIsTold(t *testing.T) {
	logged(t, droppedApp, nil, func(t *testing.T, s *testkit.System, log *records) {
		s.MustCall("Bad/b", "watch")
		s.MustCall("P/p", "say", `1`)
		time.Sleep(70 * time.Second)
		w := httptest.NewRecorder()
		r, _ := http.NewRequest(http.MethodGet, "/metrics", nil)
		s.Admin().ServeHTTP(w, r)
		found := ""
		for line := range strings.Lines(w.Body.String()) {
			if strings.HasPrefix(line, "weir_edges_dropped_total{") {
				found += line
			}
		}
		if !strings.Contains(found, `class="P"`) || !strings.HasSuffix(found, "} 1\n") {
			t.Errorf("metrics: %q", found)
		}
		found = ""
		for line := range strings.Lines(log.text()) {
			if strings.Contains(line, "an edge was dropped") {
				found += line
			}
		}
		for _, part := range []string{"level=ERROR", "object=P/p", "edge=Bad/b:e", "seq=1", "on purpose"} {
			if !strings.Contains(found, part) {
				t.Errorf("the log does not say %s: %s", part, found)
			}
		}
	})
}
