package value

import "testing"

// spec: EDGE-7
func TestFilterMatch(t *testing.T) {
	for _, tt := range []struct {
		filter, data string
		want         bool
	}{
		{``, `{"a":1}`, true}, {`{}`, `{"a":1}`, true}, {`{}`, `"text"`, true}, {`{"a":null}`, `1`, true},
		{`{"a":1}`, `{"a":1,"b":2}`, true}, {`{"a":1}`, `{"b":2,"a":1}`, true}, {`{"a":1}`, `{"a":2}`, false},
		{`{"a":1,"b":2}`, `{"a":1,"b":2,"c":3}`, true}, {`{"a":1,"b":2}`, `{"a":1}`, false}, {`{"a":1,"b":2}`, `{"a":1,"b":3}`, false},
		{`{"a":1}`, `{}`, false}, {`{"a":1}`, `{"a":null}`, false}, {`{"a":false}`, `{}`, false}, {`{"a":false}`, `{"a":false}`, true},
		{`{"a":1}`, `{"a":1.0}`, true}, {`{"a":1.0}`, `{"a":1}`, true}, {`{"a":10}`, `{"a":1e1}`, true}, {`{"a":0}`, `{"a":-0.0}`, true},
		{`{"a":1}`, `{"a":"1"}`, false}, {`{"a":"1"}`, `{"a":1}`, false}, {`{"a":"true"}`, `{"a":true}`, false},
		{`{"a":1}`, `{"a":true}`, false}, {`{"a":""}`, `{"a":""}`, true}, {`{"a":""}`, `{}`, false},
		{`{"a":"é"}`, `{"a":"\u00e9"}`, true}, {`{"é":1}`, `{"\u00e9":1}`, true}, {`{"a":"x"}`, `{"a":"X"}`, false},
		{`{"a":{"x":1,"y":[1,null]}}`, `{"a":{"y":[1.0,null],"x":1}}`, true}, {`{"a":{"x":1}}`, `{"a":{"x":1,"y":2}}`, false},
		{`{"a":{"x":1}}`, `{"a":{"x":1,"z":null}}`, true}, {`{"a":[1,2]}`, `{"a":[2,1]}`, false}, {`{"a":[1]}`, `{"a":[1,1]}`, false},
		{`{"a":{}}`, `{"a":{}}`, true}, {`{"a":{}}`, `{"a":[]}`, false}, {`{"a":[]}`, `{"a": [ ] }`, true},
		{`{"x":1}`, `{"a":{"x":1}}`, false}, {`{"a":1}`, `[1]`, false}, {`{"a":1}`, `"a"`, false}, {`{"a":1}`, `null`, false},
		{`{"a":1}`, `{"a":1,"a":2}`, false}, {`{"a":1}`, `{"a":2,"a":1}`, true}, {`{"a":1}`, `{"a":1,"a":null}`, false},
		{`{"a":1}`, ``, false}, {`{"a":1}`, `{"a":1`, false}, {`{"a":1}`, `{"a":1}x`, false}, {`{"a":1}`, `{"a":1,}`, false},
		{`{"a":1}`, `{"a":1 "b":2}`, false}, {`{"a":1}`, `{"a":1,"b":9007199254740993}`, false},
		{`{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1,"i":1}`, `{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1,"i":1}`, true},
		{`{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1,"i":1}`, `{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1,"i":2}`, false},
	} {
		f, err := ParseFilter([]byte(tt.filter))
		if err != nil {
			t.Errorf("%s: %v", tt.filter, err)
		} else if got := f.Match([]byte(tt.data)); got != tt.want {
			t.Errorf("%s on %s: %v", tt.filter, tt.data, got)
		}
	}
}

// spec: EDGE-7
func TestFilterRefused(t *testing.T) {
	for data, want := range map[string]string{
		`[]`:                     `bad value: a filter must be a table of fields, such as { room = "lobby" }, not an array`,
		`[1]`:                    `bad value: a filter must be a table of fields`,
		`null`:                   `bad value: a filter must be a table of fields, such as { room = "lobby" }, not null`,
		`"a"`:                    `bad value: a filter must be a table of fields, such as { room = "lobby" }, not text`,
		`1`:                      `bad value: a filter must be a table of fields, such as { room = "lobby" }, not a number`,
		`true`:                   `bad value: a filter must be a table of fields, such as { room = "lobby" }, not a boolean`,
		`{"a"}`:                  `bad value: filter: not valid JSON`,
		`{"a":9007199254740993}`: `bad value: filter.a: the integer`,
	} {
		_, err := ParseFilter([]byte(data))
		wantError(t, data, err, want)
	}
}

func TestFilterForm(t *testing.T) {
	parse := func(s string) Filter {
		f, err := ParseFilter([]byte(s))
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	f := parse(` {"b":1.0, "a":"x", "c":null} `)
	if got := string(f.JSON()); got != `{"a":"x","b":1}` || f.Empty() {
		t.Errorf("JSON %s, empty %v", got, f.Empty())
	}
	if !f.Equal(parse(`{"a":"x","b":1}`)) || f.Equal(parse(`{"a":"x"}`)) || f.Equal(Filter{}) {
		t.Error("Equal is wrong")
	}
	for _, none := range []Filter{{}, parse(""), parse("{}"), parse(`{"a":null}`)} {
		if !none.Empty() || string(none.JSON()) != "{}" || !none.Equal(Filter{}) {
			t.Errorf("%#v is not the empty filter", none)
		}
	}
}
