//lint:file-ignore U1000 the methods of builders are used through a type parameter

package value

import (
	"bytes"
	"maps"
	"slices"
)

// Filter selects events by equality on top-level fields of their data. All of
// its fields must match; nested values compare deeply, a field the event lacks
// matches nothing, numbers compare by value and never equal text. The zero
// Filter matches everything. A Filter is immutable.
type Filter struct {
	fields []wanted
	json   string
}

// wanted is a field and its canonical JSON. Canonical JSON is equal exactly
// when the values are.
type wanted struct {
	name string
	json []byte
}

// ParseFilter reads the JSON of a filter's table. No data and `{}` give the
// filter that matches everything; null fields are absent as everywhere.
// Whatever is not an object is an error.
func ParseFilter(data []byte) (Filter, error) {
	if len(data) == 0 {
		return Filter{}, nil
	}
	v, err := parse(data)
	if err != nil {
		return Filter{}, err.of("filter")
	}
	table, ok := v.(map[string]any)
	if !ok {
		return Filter{}, problem("a filter must be a table of fields, such as { room = \"lobby\" }, not %s", plainKind(v))
	}
	f := Filter{json: string(appendPlain(nil, table))}
	for _, name := range slices.Sorted(maps.Keys(table)) {
		f.fields = append(f.fields, wanted{name, appendPlain(nil, table[name])})
	}
	if len(f.fields) == 0 {
		return Filter{}, nil
	}
	return f, nil
}

// Empty says whether the filter matches everything.
func (f Filter) Empty() bool { return len(f.fields) == 0 }

// JSON gives the filter in canonical form, `{}` when it is empty.
func (f Filter) JSON() []byte {
	if f.Empty() {
		return []byte("{}")
	}
	return []byte(f.json)
}

// Equal says whether both filters select the same events.
func (f Filter) Equal(g Filter) bool { return f.json == g.json }

// Match says whether the event with this data, as JSON, passes the filter. Data
// that is not an object, or no JSON at all, passes only the empty one.
func (f Filter) Match(data []byte) bool {
	if f.Empty() {
		return true
	}
	var few [8]bool
	hit := few[:]
	if len(f.fields) > len(few) {
		hit = make([]bool, len(f.fields))
	}
	if !f.scan(data, hit) {
		return false
	}
	return !slices.Contains(hit[:len(f.fields)], false)
}

// scan walks over the fields of the data, notes which wanted ones are equal
// and says whether the data was an object. Of a repeated field the last counts.
func (f Filter) scan(data []byte, hit []bool) bool {
	p := parser[struct{}, skipper]{scanner: scanner{data: data}, depth: 1}
	if p.peek() != '{' {
		return false
	}
	p.pos++
	for first := true; p.peek() != '}'; first = false {
		if !first {
			if !p.at(',') {
				return false
			}
			p.pos++
		}
		name, err := p.name()
		if err != nil {
			return false
		}
		p.peek()
		start := p.pos
		if _, err := p.value(); err != nil {
			return false
		}
		for i, w := range f.fields {
			if w.name == string(name) {
				hit[i] = equalJSON(w.json, data[start:p.pos])
				break
			}
		}
	}
	p.pos++
	return p.end() == nil
}

// equalJSON compares canonical JSON with any other. Data we encoded is
// canonical already, so that mostly the bytes decide.
func equalJSON(canonical, data []byte) bool {
	if bytes.Equal(canonical, data) {
		return true
	}
	if c := data[0]; c == 't' || c == 'f' || c == 'n' || c == '"' && bytes.IndexByte(data, '\\') < 0 {
		return false // has no second spelling
	}
	v, err := parse(data)
	return err == nil && bytes.Equal(canonical, appendPlain(nil, v))
}

// skipper checks JSON and keeps nothing.
type skipper struct{}

func (skipper) null() (v struct{})                     { return v }
func (skipper) boolean(bool) (v struct{})              { return v }
func (skipper) integer(int64) (v struct{})             { return v }
func (skipper) float(float64) (v struct{})             { return v }
func (skipper) text([]byte) (v struct{})               { return v }
func (skipper) array([]struct{}) (v struct{})          { return v }
func (skipper) object([]member[struct{}]) (v struct{}) { return v }

// plainKind names what Parse gives.
func plainKind(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case string:
		return "text"
	case []any:
		return "an array"
	default:
		return "a number"
	}
}
