package value

import (
	"reflect"
	"testing"
)

// spec: VAL-3, VAL-4
func TestParse(t *testing.T) {
	got, err := Parse([]byte(`{"i":1,"f":1.5,"w":2.0,"big":1e300,"s":"x","b":true,"n":null,"l":[null,[],{}]}`))
	want := map[string]any{
		"i": int64(1), "f": 1.5, "w": int64(2), "big": 1e300, "s": "x", "b": true,
		"l": []any{nil, []any{}, map[string]any{}},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%#v, %v", got, err)
	}
}

// spec: VAL-5
func TestCanonicalLimit(t *testing.T) {
	data := []byte(` { "b" : 1.0, "a" : null } `)
	if got, err := Canonical(data, "data", 7); err != nil || string(got) != `{"b":1}` {
		t.Errorf("%s, %v", got, err)
	}
	_, err := Canonical(data, "data", 6)
	wantError(t, "limit 6", err, "bad value: data: larger than 6 bytes")
	_, err = Canonical([]byte("{"), "argument 2", 0)
	wantError(t, "syntax", err, "bad value: argument 2: not valid JSON")
}
