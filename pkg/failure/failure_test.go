package failure

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"weir/pkg/luavm"
	"weir/pkg/wire"
)

var errFailed = fmt.Errorf("outer: %w", &wire.Error{Message: "main.lua:2: cannot perform add operation between nil and number", Trace: []wire.Frame{
	{At: "Sink/x:add", File: "main.lua", Line: 2, Source: "return n + 1"},
	{At: "GET /"},
}})

// A person reads a record and below it the failure; a machine reads the same as fields.
// spec: OPS-5
func TestLogs(t *testing.T) {
	var text bytes.Buffer
	slog.New(Log(&text, slog.LevelInfo)).With("service", "host").Error("it failed", "error", errFailed, Key, Of(errFailed))
	_, got, _ := strings.Cut(text.String(), "level=ERROR ")
	const want = `msg="it failed" service=host error="outer: main.lua:2: cannot perform add operation between nil and number"
  main.lua:2  in Sink/x:add
    2 | return n + 1
  in GET /
  hint: one side is nil or no number: tonumber converts
`
	if got != want {
		t.Errorf("the terminal got\n%s", got)
	}

	var line bytes.Buffer
	slog.New(slog.NewJSONHandler(&line, nil)).Error("it failed", Key, Of(errFailed))
	var record struct{ Failure map[string]any }
	if err := json.Unmarshal(line.Bytes(), &record); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(record.Failure); got != "map[code: hint:one side is nil or no number: tonumber converts source:return n + 1 way:[main.lua:2 Sink/x:add GET /]]" {
		t.Errorf("the machine got %s", got)
	}
}

// Lua's own errors, as the VM words them, have a hint where one is usually of use.
func TestHints(t *testing.T) {
	vm := luavm.New(luavm.Options{})
	defer vm.Close()
	for source, want := range map[string]string{
		`local row row.price = 1`:              "what stands before the dot",
		`local row = {} return row.owner.name`: "what stands before the dot",
		`nosuch()`:                             "there is no function of this name",
		`local t = {} t:go()`:                  "there is no function of this name",
		`return 1 < nil`:                       "one side is nil",
		`return 1 + nil`:                       "tonumber converts",
		`return "a" .. {}`:                     "tostring converts",
		`local function f() return 1 + f() end return f()`: "calls itself",
		`error("my own")`: "",
	} {
		chunk, err := luavm.Compile("main.lua", []byte(source))
		if err != nil {
			t.Fatal(err)
		}
		_, err = vm.Run(luavm.NewMeter(context.Background(), 1_000_000), chunk)
		if err == nil {
			t.Fatalf("%s does not fail", source)
		}
		if f := Of(&wire.Error{Message: err.Error()}); !strings.Contains(f.Hint, want) || (want == "") != (f.Hint == "") {
			t.Errorf("%s: %s: the hint is %q", source, err, f.Hint)
		}
	}
	for _, code := range []wire.Code{wire.Overloaded, wire.Timeout, wire.BudgetExceeded, wire.LogFull, wire.FollowRefused, wire.Cycle} {
		if f := Of(wire.Errorf(code, "x")); f.Hint == "" || f.Code != string(code) || f.Text != string(code)+": x" {
			t.Errorf("%s: %+v", code, f)
		}
	}
	if f := Of(nil); f.Text != "" || f.Frames != nil {
		t.Errorf("no error: %+v", f)
	}
}

// A method of state or conn that is not there is named, with those that are.
func TestNoMethod(t *testing.T) {
	for source, want := range map[string]string{
		`    state:folow(P("p"), "e")`: `state has no method "folow"; it has publish, follow, unfollow, followers, drop_followers, set_alarm, clear_alarm, and the class's own`,
		`conn:sned({ a = 1 })`:         `conn has no method "sned"; it has send, follow, unfollow, close`,
		`state:publish("e", helper())`: luaHints[0].hint,
		`state:one(); state:two()`:     luaHints[0].hint,
		`local x = nothing()`:          luaHints[0].hint,
	} {
		e := &wire.Error{Message: "main.lua:3: attempt to call a non-function object", Trace: []wire.Frame{{File: "main.lua", Line: 3, Source: source}}}
		if got := Of(e).Hint; got != want {
			t.Errorf("%s: %q, want %q", source, got, want)
		}
	}
}
