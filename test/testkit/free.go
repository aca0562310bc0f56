package testkit

import (
	"math/rand/v2"
	"net"
	"strconv"
	"testing"
)

// FreeAddr gives a loopback address that nothing listens on, for a process to listen on later. Its port is below those
// that connections are given, so that none takes it meanwhile; until the test ends its UDP port is taken, so that no
// other test is given the same.
func FreeAddr(t testing.TB) string {
	t.Helper()
	for range 1000 {
		addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(10_000+rand.IntN(22_000)))
		taken, err := net.ListenPacket("udp", addr)
		if err != nil {
			continue
		}
		if l, err := net.Listen("tcp", addr); err == nil {
			_ = l.Close()
			t.Cleanup(func() { _ = taken.Close() })
			return addr
		}
		_ = taken.Close()
	}
	t.Fatal("no port is free")
	return ""
}
