package objectid

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestEscape(t *testing.T) {
	for in, want := range map[string]string{
		"":                             "_e",
		"lot-42":                       "lot-42",
		"A":                            "_41",
		"a":                            "a",
		"_":                            "_5f",
		"_e":                           "_5fe",
		"_x":                           "_5fx",
		".":                            "_2e",
		"..":                           "_2e_2e",
		"%2e":                          "_252e",
		"a/b c":                        "a_2fb_20c",
		"é":                            "_c3_a9",
		"\xff\x00":                     "_ff_00",
		strings.Repeat("a", 120):       strings.Repeat("a", 120),
		strings.Repeat("A", 40):        strings.Repeat("_41", 40),
		strings.Repeat("a", 121):       strings.Repeat("a", 54) + "_xe9615320128cc7a3d6078e9af05603188e5ccbf0d07d8b735d3df5e8e0c1281f",
		strings.Repeat("A", 41):        strings.Repeat("_41", 18) + "_xb78244167af116f2b3597b4a81421bd2b28f3d8bf616025a5ae424f689fd7632",
		"a" + strings.Repeat("A", 128): "a" + strings.Repeat("_41", 17) + "_x25473460a12e0fb90d11b3ce16ab05c30843c5f7847815dbc0562cb18cfddc1c",
	} {
		if got := Escape(in); got != want {
			t.Errorf("Escape(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestUnescapeRefusesWhatEscapeDoesNotMake(t *testing.T) {
	for _, token := range []string{
		"", "_", "a_", "_4", "_4g", "_4G", "_41_", "_E", "_ee_e", "_e_", "_61", "_2d", "_30", "_2E", "A", "a.b", "a b",
		"_x", Escape(strings.Repeat("a", 121)), strings.Repeat("a", 121),
	} {
		if s, ok := Unescape(token); ok {
			t.Errorf("Unescape(%q) = %q", token, s)
		}
	}
}

// spec: OBJ-3
func TestDistinctIDsNeverMeet(t *testing.T) {
	// A small alphabet of troublesome pieces makes near misses likely.
	piece := rapid.SampledFrom([]string{
		"a", "A", "b", "_", "-", ".", "/", "_x", "_e", "_4", "41", "é", "É", "e\u0301", "*", ">", " ", "%", "\x00",
		strings.Repeat("a", 54), strings.Repeat("A", 60),
	})
	text := rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(piece, 0, 4).Draw(t, "pieces"), "")
	})
	rapid.Check(t, func(t *rapid.T) {
		a := ID{text.Draw(t, "class"), text.Draw(t, "name")}
		b := ID{text.Draw(t, "class"), text.Draw(t, "name")}
		checkPair(t, a, b)
	})
}

// spec: OBJ-3
func FuzzDistinct(f *testing.F) {
	f.Add("Auction", "a", "Auction", "A")
	f.Add("A", "", "A", "_e")
	f.Add("A", strings.Repeat("a", 121), "A", strings.Repeat("a", 122))
	f.Add("a.b", "c", "a", "b.c")
	f.Fuzz(func(t *testing.T, class1, name1, class2, name2 string) {
		checkPair(t, ID{class1, name1}, ID{class2, name2})
	})
}

func FuzzParse(f *testing.F) {
	f.Add("Auction/lot-42")
	f.Add("A/\x00")
	f.Fuzz(func(t *testing.T, s string) {
		id, err := Parse(s)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "bad name: ") || len(err.Error()) > 400 {
				t.Fatalf("Parse(%q): %v", s, err)
			}
			return
		}
		if id.String() != s || id.Validate() != nil {
			t.Fatalf("Parse(%q) = %#v", s, id)
		}
		if p := id.Partition(); p < 0 || p >= Partitions {
			t.Fatalf("partition %d", p)
		}
	})
}

type tester interface {
	Helper()
	Fatalf(string, ...any)
}

func checkPair(t tester, a, b ID) {
	t.Helper()
	for _, s := range []string{a.Class, a.Name, b.Class, b.Name} {
		checkToken(t, s)
	}
	if a == b {
		return
	}
	if strings.EqualFold(a.Token(), b.Token()) {
		t.Fatalf("%#v and %#v share the token %s", a, b, a.Token())
	}
	if strings.EqualFold(a.File(), b.File()) {
		t.Fatalf("%#v and %#v share the file %s", a, b, a.File())
	}
}

func checkToken(t tester, s string) {
	t.Helper()
	token := Escape(s)
	if token == "" || len(token) > maxToken || strings.Trim(token, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
		t.Fatalf("Escape(%q) = %q is no token", s, token)
	}
	back, ok := Unescape(token)
	if hashed := strings.Contains(token, hashMark); hashed == ok || ok && back != s {
		t.Fatalf("Unescape(Escape(%q)) = %q, %v", s, back, ok)
	}
}
