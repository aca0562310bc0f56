//lint:file-ignore U1000 the methods of builders are used through a type parameter

package value

import (
	"maps"
	"slices"
)

// Parse checks JSON by the same rules as [Decode] and gives plain Go values:
// nil, bool, int64, float64, string, []any and map[string]any. A number that is
// an integer within ±2^53 is an int64 however it was written; null fields are
// absent, null elements nil.
func Parse(data []byte) (any, error) {
	v, err := parse(data)
	if err != nil {
		return nil, err.of("value")
	}
	return v, nil
}

// Canonical checks JSON and gives it in the form [Encode] writes: keys sorted,
// null fields left out, numbers and escapes in their one spelling. root names
// the value in errors; limit bounds the result in bytes, 0 stands for no limit.
func Canonical(data []byte, root string, limit int) ([]byte, error) {
	v, err := parse(data)
	if err != nil {
		return nil, err.of(root)
	}
	out := appendPlain(make([]byte, 0, len(data)), v)
	if limit > 0 && len(out) > limit {
		return nil, tooLarge(limit).of(root)
	}
	return out, nil
}

func parse(data []byte) (any, *Error) {
	p := parser[any, goBuilder]{scanner: scanner{data: data}}
	return p.document()
}

// goBuilder makes plain Go values.
type goBuilder struct{}

func (goBuilder) null() any            { return nil }
func (goBuilder) boolean(b bool) any   { return b }
func (goBuilder) integer(i int64) any  { return i }
func (goBuilder) text(text []byte) any { return string(text) }

func (goBuilder) float(f float64) any {
	if integral(f) {
		return int64(f)
	}
	return f
}

func (goBuilder) array(items []any) any {
	return append(make([]any, 0, len(items)), items...)
}

func (goBuilder) object(members []member[any]) any {
	m := make(map[string]any, len(members))
	for _, f := range members {
		if f.value == nil {
			delete(m, string(f.name))
		} else {
			m[string(f.name)] = f.value
		}
	}
	return m
}

// appendPlain appends the canonical JSON of what Parse gives.
func appendPlain(b []byte, v any) []byte {
	switch v := v.(type) {
	case bool:
		if v {
			return append(b, "true"...)
		}
		return append(b, "false"...)
	case int64:
		return appendNumber(b, float64(v))
	case float64:
		return appendNumber(b, v)
	case string:
		b, _ = appendText(b, v)
		return b
	case []any:
		b = append(b, '[')
		for i, item := range v {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendPlain(b, item)
		}
		return append(b, ']')
	case map[string]any:
		b = append(b, '{')
		for i, name := range slices.Sorted(maps.Keys(v)) {
			if i > 0 {
				b = append(b, ',')
			}
			b, _ = appendText(b, name)
			b = appendPlain(append(b, ':'), v[name])
		}
		return append(b, '}')
	default:
		return append(b, "null"...)
	}
}
