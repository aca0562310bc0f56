package main

import (
	"os"
	"reflect"
	"strings"
	"testing"
)

// TestSettingsAreDocumented: every variable that a flag reads stands in docs/settings.md.
func TestSettingsAreDocumented(t *testing.T) {
	doc, err := os.ReadFile("../../docs/settings.md")
	if err != nil {
		t.Fatal(err)
	}
	var walk func(reflect.Type)
	walk = func(x reflect.Type) {
		for i := range x.NumField() {
			f := x.Field(i)
			if env := f.Tag.Get("env"); env != "" && !strings.Contains(string(doc), "`"+env+"`") {
				t.Errorf("%s is not in docs/settings.md", env)
			}
			if f.Anonymous {
				walk(f.Type)
			}
		}
	}
	for _, c := range []any{devCommand{}, checkCommand{}, callCommand{}, edgesCommand{}} {
		walk(reflect.TypeOf(c))
	}
}
