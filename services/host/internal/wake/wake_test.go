package wake

import (
	"path/filepath"
	"testing"

	"weir/pkg/objectid"
)

var testID = objectid.ID{Class: "A", Name: "a"}

func open(t *testing.T, path string) *List {
	t.Helper()
	l, _, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close(false) })
	return l
}

// An entry that could not be written is not taken for written: who tries again writes it, and one that could not be removed
// stands.
// spec: ALRM-1, DLV-5
func TestFailedWriteIsNotRemembered(t *testing.T) {
	path := filepath.Join(t.TempDir(), "wake.db")
	l := open(t, path)
	want := Entry{Events: true, Due: 7}
	failing := func(what string, do func() error) {
		t.Helper()
		if err := l.exec("PRAGMA query_only=1", nil); err != nil {
			t.Fatal(err)
		}
		if do() == nil {
			t.Errorf("%s: no error", what)
		}
		if err := l.exec("PRAGMA query_only=0", nil); err != nil {
			t.Fatal(err)
		}
	}
	failing("expect", func() error { return l.Expect(testID, want) })
	if len(l.All()) != 0 {
		t.Errorf("what was not written is there: %v", l.All())
	}
	if err := l.Expect(testID, want); err != nil {
		t.Fatal(err)
	}
	failing("settle", func() error { return l.Settle(testID, Entry{}) })
	if err := l.Close(true); err != nil {
		t.Fatal(err)
	}
	if got := open(t, path).All()[testID]; got != want {
		t.Errorf("after opening it again: %+v, want %+v", got, want)
	}
}

// Once a sync has failed none is tried again, and who uses the list is told.
func TestSyncFails(t *testing.T) {
	l := open(t, filepath.Join(t.TempDir(), "wake.db"))
	if err := l.Sync(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-l.Broken():
		t.Fatal("broken before it was")
	default:
	}
	if err := l.wal.Close(); err != nil { // no sync can succeed
		t.Fatal(err)
	}
	if err := l.Expect(testID, Entry{Due: 1}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if l.Sync() == nil {
			t.Error("a sync without a file succeeded")
		}
	}
	<-l.Broken()
}
