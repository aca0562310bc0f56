package luavm

import (
	"context"
	"testing"
)

func BenchmarkNewVM(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		New(Options{}).Close()
	}
}

// BenchmarkInstructions runs about a million instructions per iteration.
func BenchmarkInstructions(b *testing.B) {
	benchmark(b, `local n = 0 for i = 1, 250000 do n = n + i % 7 end return n`)
}

func BenchmarkConcat(b *testing.B) {
	benchmark(b, `local s for i = 1, 10000 do s = "key" .. i .. ":" .. i end`)
}

func BenchmarkStore(b *testing.B) {
	benchmark(b, `local t = {} for i = 1, 10000 do t[i] = i end`)
}

func BenchmarkMatch(b *testing.B) {
	benchmark(b, `local s = "key = value" for i = 1, 1000 do s:match("^(%w+)%s*=%s*(%w+)$") end`)
}

func BenchmarkPCall(b *testing.B) {
	benchmark(b, `local f = function() end for i = 1, 10000 do pcall(f) end`)
}

func BenchmarkCoroutine(b *testing.B) {
	benchmark(b, `local f = coroutine.wrap(function() while true do coroutine.yield() end end) for i = 1, 10000 do f() end`)
}

func benchmark(b *testing.B, src string) {
	vm := newVM(b)
	c := compile(b, src)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := vm.Run(NewMeter(context.Background(), defaultBudget), c); err != nil {
			b.Fatal(err)
		}
	}
}
