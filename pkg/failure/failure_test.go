package failure

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"weir/pkg/wire"
)

var failed = fmt.Errorf("outer: %w", &wire.Error{Message: "main.lua:2: cannot perform add operation between nil and number", Trace: []wire.Frame{
	{At: "Sink/x:add", File: "main.lua", Line: 2, Source: "return n + 1"},
	{At: "GET /"},
}})

// A person reads a record and below it the failure; a machine reads the same as fields.
// spec: OPS-5
func TestLogs(t *testing.T) {
	var text bytes.Buffer
	slog.New(Log(&text, slog.LevelInfo)).With("service", "host").Error("it failed", "error", failed, Key, Of(failed))
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
	slog.New(slog.NewJSONHandler(&line, nil)).Error("it failed", Key, Of(failed))
	var record struct{ Failure map[string]any }
	if err := json.Unmarshal(line.Bytes(), &record); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(record.Failure); got != "map[code: hint:one side is nil or no number: tonumber converts source:return n + 1 way:[main.lua:2 Sink/x:add GET /]]" {
		t.Errorf("the machine got %s", got)
	}
}

// Every code of the platform that an app's developer can do something about has a hint, and the hint names it.
func TestHints(t *testing.T) {
	for code := range hints {
		if f := Of(wire.Errorf(code, "x")); f.Hint == "" || f.Code != string(code) || f.Text != string(code)+": x" {
			t.Errorf("%s: %+v", code, f)
		}
	}
	if f := Of(nil); f.Text != "" || f.Frames != nil {
		t.Errorf("no error: %+v", f)
	}
}
