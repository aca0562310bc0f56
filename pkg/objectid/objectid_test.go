package objectid

import (
	"fmt"
	"strings"
	"testing"
)

// spec: OBJ-1, OBJ-3
func TestParse(t *testing.T) {
	for _, tt := range []struct {
		in    string
		want  ID
		wrong string
	}{
		{in: "Auction/lot-42", want: ID{"Auction", "lot-42"}},
		{in: "Auction/a/b//c", want: ID{"Auction", "a/b//c"}},
		{in: "a_1/..", want: ID{"a_1", ".."}},
		{in: "Auction/*", want: ID{"Auction", "*"}},
		{in: "Auction/>", want: ID{"Auction", ">"}},
		{in: "Auction/ ", want: ID{"Auction", " "}},
		{in: "Auction/🐟\u00a0", want: ID{"Auction", "🐟\u00a0"}},
		{in: "Auction/" + strings.Repeat("x", 128), want: ID{"Auction", strings.Repeat("x", 128)}},
		{in: strings.Repeat("C", 64) + "/x", want: ID{strings.Repeat("C", 64), "x"}},
		{in: "Auction", wrong: `bad name: "Auction" has no '/'; write an object as Class/name`},
		{in: "", wrong: `bad name: "" has no '/'`},
		{in: "/x", wrong: `bad name: "" is not a class; a class is a letter`},
		{in: "_A/x", wrong: `"_A" is not a class`},
		{in: "9A/x", wrong: `"9A" is not a class`},
		{in: "Aü/x", wrong: `"Aü" is not a class`},
		{in: strings.Repeat("C", 65) + "/x", wrong: `CCCC"… is not a class; a class is a letter followed by letters, digits and '_', at most 64 bytes`},
		{in: "Auction/", wrong: "bad name: an object of Auction needs a name; a name is 1 to 128 bytes of UTF-8 without control characters"},
		{in: "Auction/" + strings.Repeat("x", 129), wrong: "has 129 bytes; a name is"},
		{in: "Auction/a\xff", wrong: `"a\xff" is not valid UTF-8`},
		{in: "Auction/a\nb", wrong: `"a\nb" contains the control character U+000A`},
		{in: "Auction/\x00", wrong: "U+0000"},
		{in: "Auction/\x7f", wrong: "U+007F"},
		{in: "Auction/\u0085", wrong: "U+0085"},
	} {
		id, err := Parse(tt.in)
		if tt.wrong != "" {
			if err == nil || !strings.HasPrefix(err.Error(), "bad name: ") || !strings.Contains(err.Error(), tt.wrong) {
				t.Errorf("Parse(%q): %v, want %q", tt.in, err, tt.wrong)
			}
			continue
		}
		if err != nil || id != tt.want || id.String() != tt.in {
			t.Errorf("Parse(%q) = %#v, %v", tt.in, id, err)
		}
	}
}

// spec: OBJ-1
func TestValidWord(t *testing.T) {
	for s, want := range map[string][2]bool{ // class, word
		"Auction": {true, true}, "a": {true, true}, "A_9": {true, true},
		"_total": {false, true}, "_": {false, true},
		"": {}, "9a": {}, "a-b": {}, "a b": {}, "a.b": {}, "é": {}, "a\n": {},
		strings.Repeat("a", 64): {true, true}, strings.Repeat("a", 65): {},
	} {
		if got := [2]bool{ValidClass(s), ValidWord(s)}; got != want {
			t.Errorf("%q: class, word = %v, want %v", s, got, want)
		}
	}
}

// These values are part of the data format: a change loses every object.
//
// spec: OBJ-3
func TestGolden(t *testing.T) {
	for _, tt := range []struct {
		id          ID
		token, file string
		partition   int
	}{
		{ID{"Auction", "lot-42"}, "_41uction.lot-42", "_41uction/fd/lot-42.db", 249},
		{ID{"Auction", "Lot-42"}, "_41uction._4cot-42", "_41uction/9a/_4cot-42.db", 94},
		{ID{"chat_room", "../x y"}, "chat_5froom._2e_2e_2fx_20y", "chat_5froom/28/_2e_2e_2fx_20y.db", 198},
		{ID{"A", "*"}, "_41._2a", "_41/4f/_2a.db", 80},
		{ID{"A", "🐟"}, "_41._f0_9f_90_9f", "_41/71/_f0_9f_90_9f.db", 44},
	} {
		got := fmt.Sprintln(tt.id.Token(), tt.id.File(), tt.id.Partition())
		if want := fmt.Sprintln(tt.token, tt.file, tt.partition); got != want {
			t.Errorf("%s:\n got %swant %s", tt.id, got, want)
		}
	}
}

func TestPartitionsAreEven(t *testing.T) {
	var count [Partitions]int
	const each = 400
	for i := range each * Partitions {
		count[ID{"Auction", fmt.Sprint("lot-", i)}.Partition()]++
	}
	for p, n := range count {
		if n < each*3/4 || n > each*5/4 {
			t.Errorf("partition %d has %d objects of about %d", p, n, each)
		}
	}
}
