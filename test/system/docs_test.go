package system

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"weir/pkg/wire"
	"weir/services/host/hostd"
	"weir/test/testkit"
)

// TestLuaReference runs every example of docs/lua.md in an object's method: what stands behind "-->" is the value of the
// line.
func TestLuaReference(t *testing.T) {
	text, err := os.ReadFile("../../docs/lua.md")
	if err != nil {
		t.Fatal(err)
	}
	var app strings.Builder
	app.WriteString(`local box = kv "box"
local Example = objects "Example"
object "Example" {
    publishes = { sale = "public" },
    hooks = { alarm = function(state) end },
    double = function(state, n) return 2 * n end,
    total = function(state) return 0 end,
    watchers = function(state)
        local rows = json.array()
        for i, f in ipairs(state:followers()) do
            rows[i] = { id = f.id, topic = f.topic, transport = f.transport, filter = f.filter }
        end
        return rows
    end,
`)
	var wants [][]string
	blocks := strings.Split(string(text), "```lua\n")[1:]
	for i, block := range blocks {
		code, _, _ := strings.Cut(block, "```")
		var want []string
		fmt.Fprintf(&app, "    example_%d = function(state)\n        local out = {}\n", i)
		for line := range strings.Lines(code) {
			expr, value, ok := strings.Cut(line, "-->")
			if !ok {
				app.WriteString("        " + line)
				continue
			}
			fmt.Fprintf(&app, "        out[#out + 1] = json.stringify((%s))\n", strings.TrimSpace(expr))
			want = append(want, strings.TrimSpace(value))
		}
		app.WriteString("        return out\n    end,\n")
		wants = append(wants, want)
	}
	app.WriteString("}\n")
	archive := &txtar.Archive{Files: []txtar.File{{Name: "main.lua", Data: []byte(app.String())}}}
	testkit.Bubble(t, archive, hostd.Limits{}, func(t *testing.T, s *testkit.System) {
		for i, want := range wants {
			got := s.MustCall("Example/docs", fmt.Sprintf("example_%d", i))
			quoted := make([]string, len(want))
			for k, w := range want {
				b, err := jsonText(w)
				if err != nil {
					t.Fatal(err)
				}
				quoted[k] = b
			}
			expected := "[" + strings.Join(quoted, ",") + "]"
			if len(want) == 0 {
				expected = "{}"
			}
			if got != expected {
				t.Errorf("example %d:\n got %s\nwant %s\n%s", i, got, expected, blocks[i][:min(len(blocks[i]), 300)])
			}
		}
	})
	if len(blocks) < 10 {
		t.Errorf("only %d examples", len(blocks))
	}
}

// jsonText gives a text as a JSON string, as the product writes it.
func jsonText(s string) (string, error) {
	b, err := wire.Encode(s)
	return string(b), err
}
