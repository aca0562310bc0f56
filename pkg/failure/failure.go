// Package failure shows what went wrong in an app's code, in the same words wherever somebody reads it: on a terminal, in
// a log, on the page of weir dev. It shows the error, the lines of code on the way to it over all objects that took part,
// and a hint.
package failure

import (
	"fmt"
	"log/slog"
	"strings"

	"weir/pkg/wire"
)

// Key is the key of a Failure in a log record, beside "error" with the text alone.
const Key = "failure"

// Failure is an error of an app as it is shown. The zero value is none.
type Failure struct {
	Text   string
	Code   string // the platform's error code; empty for what the app raised
	Hint   string // what to do; may be empty
	Frames []wire.Frame
}

// Of reads an error: whatever it is, *wire.Error or not.
func Of(err error) Failure {
	e := wire.AsError(err)
	if e == nil {
		return Failure{}
	}
	return Failure{Text: e.Error(), Code: string(e.Code), Hint: hint(e), Frames: e.Trace}
}

// Terminal is the failure for a person at a terminal, over several lines, the last without its end.
func (f Failure) Terminal() string {
	return f.Text + f.Details()
}

// Details is Terminal without the text in the first line: empty if there is nothing to add.
func (f Failure) Details() string {
	var b strings.Builder
	for _, fr := range f.Frames {
		if fr.File == "" {
			fmt.Fprintf(&b, "\n  in %s", fr.At)
			continue
		}
		fmt.Fprintf(&b, "\n  %s:%d  in %s\n    %d | %s", fr.File, fr.Line, fr.At, fr.Line, fr.Source)
	}
	if f.Hint != "" {
		b.WriteString("\n  hint: " + f.Hint)
	}
	return b.String()
}

// LogValue gives a log that machines read the same as fields: code, the way as a list of places, the innermost line's
// source, the hint.
func (f Failure) LogValue() slog.Value {
	way := make([]string, len(f.Frames))
	source := ""
	for i, fr := range f.Frames {
		way[i] = fr.At
		if fr.File != "" {
			way[i] = fmt.Sprintf("%s:%d %s", fr.File, fr.Line, fr.At)
			if source == "" {
				source = fr.Source
			}
		}
	}
	return slog.GroupValue(slog.String("code", f.Code), slog.String("source", source), slog.Any("way", way), slog.String("hint", f.Hint))
}
