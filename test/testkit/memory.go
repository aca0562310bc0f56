package testkit

import (
	"fmt"
	"os"
	"runtime/debug"
	"testing"
)

// Settled gives the bytes of memory that this process holds once what is garbage has gone back. Linux only.
func Settled(t testing.TB) int64 {
	t.Helper()
	debug.FreeOSMemory()
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	var size, pages int64
	if _, err := fmt.Sscan(string(text), &size, &pages); err != nil {
		t.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}
