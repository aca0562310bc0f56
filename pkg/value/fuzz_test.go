package value

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

var seeds = []string{
	`null`, `[]`, `{}`, `[null,1,-2.5e-7,"é\ud83d\udc1f\u0000"]`, `{"b":{"a":[1.0]},"a":null,"a":2}`, `9007199254740993`,
	`1e300`, `9007199254740994.0`, `-0`, `"\ud800"`, "\"\xff\"", `[1,]`, `{"a":1`, "[[[[[[1]]]]]]", `01`, `1e999`, ` [ 1 , 2 ] `,
}

// Whatever arrives, decoding never panics, agrees with encoding/json on what is
// JSON where the rules are the same, and accepted JSON has one canonical form.
//
// spec: VAL-4, VAL-6
func FuzzDecode(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	L := newState(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := Decode(L, data, "value")
		plain, plainErr := Parse(data)
		if (err == nil) != (plainErr == nil) || err != nil && err.Error() != plainErr.Error() {
			t.Fatalf("Decode says %v, Parse %v", err, plainErr)
		}
		if err != nil {
			stricter := !strings.HasPrefix(err.Error(), "bad value: value: not valid JSON") ||
				strings.Contains(err.Error(), "surrogate") || strings.Contains(err.Error(), "UTF-8")
			if !stricter && json.Valid(data) {
				t.Fatalf("refuses JSON: %v", err)
			}
			return
		}
		var oracle any
		if err := json.Unmarshal(data, &oracle); err != nil {
			t.Fatalf("accepts what is no JSON: %v", err)
		}
		if !reflect.DeepEqual(dropNulls(oracle), floats(plain)) {
			t.Fatalf("%#v, but encoding/json reads %#v", plain, oracle)
		}
		first, err := Encode(v, "value", 0)
		if err != nil {
			t.Fatalf("decoded but does not encode: %v", err)
		}
		for _, in := range [][]byte{data, first} {
			if c, err := Canonical(in, "value", 0); err != nil || string(c) != string(first) {
				t.Fatalf("canonical %s, %v, but encoded %s", c, err, first)
			}
		}
		again, err := Decode(L, first, "value")
		if err != nil || !same(v, again) {
			t.Fatalf("%s does not decode to the same value: %v", first, err)
		}
	})
}

// A filter matches exactly when each of its fields equals the event's.
//
// spec: EDGE-7
func FuzzFilter(f *testing.F) {
	f.Add([]byte(`{"a":1}`), []byte(`{"a":1.0,"b":2}`))
	f.Add([]byte(`{"a":{"b":[null,{}]}}`), []byte(`{"a":{"c":null,"b":[null,{}]},"a":3}`))
	for _, s := range seeds {
		f.Add([]byte(`{"a":`+s+`}`), []byte(`{"a":`+s+`}`))
	}
	f.Fuzz(func(t *testing.T, filter, data []byte) {
		fl, err := ParseFilter(filter)
		if err != nil {
			return
		}
		want := fl.Empty()
		event, err := Parse(data)
		if fields, ok := event.(map[string]any); err == nil && ok {
			v, _ := Parse(fl.JSON())
			want = true
			for name, field := range v.(map[string]any) {
				got, present := fields[name]
				want = want && present && reflect.DeepEqual(field, got)
			}
		}
		if got := fl.Match(data); got != want {
			t.Fatalf("%s on %s: %v, want %v", fl.JSON(), data, got, want)
		}
		again, err := ParseFilter(fl.JSON())
		if err != nil || !again.Equal(fl) {
			t.Fatalf("%s does not read back: %v", fl.JSON(), err)
		}
		if _, err := Parse(filter); err == nil && len(filter) > 0 && !fl.Match(filter) {
			t.Fatalf("%s does not match itself", filter)
		}
	})
}

// dropNulls removes null fields from what encoding/json reads.
func dropNulls(v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = dropNulls(v[i])
		}
	case map[string]any:
		for k, item := range v {
			if item == nil {
				delete(v, k)
			} else {
				v[k] = dropNulls(item)
			}
		}
	}
	return v
}

// floats makes every number a float64, as encoding/json does.
func floats(v any) any {
	switch v := v.(type) {
	case int64:
		return float64(v)
	case []any:
		for i := range v {
			v[i] = floats(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = floats(v[k])
		}
	}
	return v
}
