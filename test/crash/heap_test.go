package crash

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"weir/test/testkit"
)

const heapApp = `
-- main.lua --
local function eat()
    local all = {}
    while true do all[#all + 1] = ("x"):rep(1000000) end
end
local Source = object "Source" { eat = function() eat() end, ok = function() return "ok" end }
on "fetch" (function(request)
    if request.path == "/eat" then eat() end
    return { body = "ok" }
end)
`

// What WEIR_LIMIT_HEAP_BYTES sets bounds the app's code in a host and in a gateway; both go on.
// spec: BOX-3
func TestHeapLimit(t *testing.T) {
	c := newCluster(t, "")
	c.app = filepath.Join(c.dir, "eats")
	testkit.WriteApp(t, c.app, txtar.Parse([]byte(heapApp)))
	for _, name := range []string{"nats", "router"} {
		c.start(name)
	}
	for _, name := range []string{"host", "gateway"} {
		c.start(name, "--limit-heap-bytes", "200000000")
	}
	c.ready("host", "router", "gateway")
	client := c.client()
	ctx, cancel := within(60 * time.Second)
	defer cancel()
	if out, err := call(ctx, client, "Source/a", "eat"); err == nil || !strings.HasPrefix(err.Error(), "memory limit: ") {
		t.Errorf("a host's call that eats memory: %s %v", out, err)
	}
	if out, err := call(ctx, client, "Source/a", "ok"); err != nil || string(out) != `"ok"` {
		t.Errorf("and then: %s %v", out, err)
	}
	get := func(path string) string {
		resp, err := http.Get("http://" + c.listen + path)
		if err != nil {
			return err.Error()
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		return resp.Status + " " + string(body)
	}
	if got := get("/eat"); !strings.HasPrefix(got, "500 ") {
		t.Errorf("a gateway's handler that eats memory: %s", got)
	}
	text, _ := os.ReadFile(c.log.Name())
	if !slices.ContainsFunc(strings.Split(string(text), "\n"), func(line string) bool {
		return strings.Contains(line, `"service":"gateway"`) && strings.Contains(line, "memory limit: ")
	}) {
		t.Errorf("the gateway's log does not say why: %s", text)
	}
	if got := get("/"); got != "200 OK ok" {
		t.Errorf("and then: %s", got)
	}
}
