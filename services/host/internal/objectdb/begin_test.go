package objectdb

import (
	"context"
	"path/filepath"
	"testing"

	"zombiezen.com/go/sqlite"
)

// A transaction that cannot begin, since its time is over, leaves nothing behind: what is read without one, and the next,
// go on.
// spec: SQL-7, ALRM-1
func TestBeginTooLate(t *testing.T) {
	late, cancel := context.WithCancel(context.Background())
	cancel()
	for what, db := range map[string]*DB{"kept": open(t), "new": fresh(t)} {
		if err := db.Begin(late); err == nil {
			t.Errorf("%s: a transaction began after its time", what)
		}
		if _, _, err := db.Alarm(); err != nil {
			t.Errorf("%s: the alarm afterwards: %v", what, err)
		}
		if _, err := db.LastBefore(db.Edges.Head + 1); what == "kept" && err != nil {
			t.Errorf("%s: the log afterwards: %v", what, err)
		}
		begin(t, db)
		limit := int64(0)
		if err := db.query("PRAGMA max_page_count", func(s *sqlite.Stmt) error { limit = s.ColumnInt64(0); return nil }); err != nil || limit != db.pages || limit > 64<<20/4096+512 {
			t.Errorf("%s: the file may have %d pages: %v", what, limit, err)
		}
		if err := db.SetAlarm(Alarm{Due: 1, Next: 1}, false); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		commit(t, db)
		if _, ok, err := db.Alarm(); !ok || err != nil {
			t.Errorf("%s: the alarm that was set: %v %v", what, ok, err)
		}
	}
}

func fresh(t *testing.T) *DB {
	t.Helper()
	db, err := Open(filepath.Join(t.TempDir(), "n.db"), testID, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}
