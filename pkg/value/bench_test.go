package value

import (
	"testing"
)

const small = `{"amount":25,"at":1760000000000,"bidder":"ada","lot":{"id":"lot-42","tags":["new","rare"]},"open":true}`

func BenchmarkEncode(b *testing.B) {
	L := newState(b)
	v, err := Decode(L, []byte(small), "value")
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.SetBytes(int64(len(small)))
	for b.Loop() {
		if _, err := Encode(v, "value", MaxEvent); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	L := newState(b)
	data := []byte(small)
	b.ReportAllocs()
	b.SetBytes(int64(len(small)))
	for b.Loop() {
		if _, err := Decode(L, data, "value"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkFilterMatch(b *testing.B) {
	f, err := ParseFilter([]byte(`{"bidder":"ada","open":true}`))
	if err != nil {
		b.Fatal(err)
	}
	data := []byte(small)
	b.ReportAllocs()
	for b.Loop() {
		if !f.Match(data) {
			b.Fatal("no match")
		}
	}
}
