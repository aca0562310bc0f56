package objectid

import "testing"

// A token is unescaped only to the text that it stands for: there is one spelling.
// spec: OBJ-3
func FuzzUnescape(f *testing.F) {
	for _, s := range []string{"", "a", "_41", "_41-9", "_4", "_4g", "_4A", "_61", "_x", "_", "__", "A", "a.b", "_00", "_ff", Escape("é/ \x00"), Escape(string(make([]byte, 200)))} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, token string) {
		text, ok := Unescape(token)
		if ok && Escape(text) != token {
			t.Fatalf("%q is read as %q, whose token is %q", token, text, Escape(text))
		}
	})
}
