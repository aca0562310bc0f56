package objectdb

import (
	"strings"

	"zombiezen.com/go/sqlite"
)

// Get gives a value of the key-value store, nil if there is none.
func (db *DB) Get(key string) (data []byte, err error) {
	err = db.query("SELECT value FROM _weir_store WHERE key = ?", func(s *sqlite.Stmt) error {
		data = []byte(s.ColumnText(0))
		return nil
	}, key)
	return data, db.appError(err)
}

// Set stores a value.
func (db *DB) Set(key string, data []byte) error {
	return db.appError(db.write("INSERT OR REPLACE INTO _weir_store VALUES (?, ?)", key, string(data)))
}

// Delete removes a key; it is no error without one.
func (db *DB) Delete(key string) error {
	return db.appError(db.write("DELETE FROM _weir_store WHERE key = ?", key))
}

// Item is a key of the store with its value.
type Item struct {
	Key  string
	Data []byte
}

// List gives up to limit items after cursor whose keys start with prefix, in key order, and whether there are more.
func (db *DB) List(prefix, cursor string, limit int) (items []Item, more bool, err error) {
	from := prefix
	op := ">="
	if cursor != "" && cursor >= prefix {
		from, op = cursor, ">"
	}
	err = db.query("SELECT key, value FROM _weir_store WHERE key "+op+" ? ORDER BY key LIMIT ?", func(s *sqlite.Stmt) error {
		key := s.ColumnText(0)
		if !strings.HasPrefix(key, prefix) {
			return nil
		}
		if len(items) == limit {
			more = true
			return nil
		}
		items = append(items, Item{key, []byte(s.ColumnText(1))})
		return nil
	}, from, limit+1)
	return items, more, db.appError(err)
}

// Alarm is the object's one alarm.
type Alarm struct {
	Due   int64 // Unix milliseconds it was set for
	SetAt int64 // tells one setting from another
	Count int   // failed attempts
	Next  int64 // when it is tried next; Due at first
	Error string
}

// Alarm reads the alarm; ok is false without one, and for one that was given up.
func (db *DB) Alarm() (a Alarm, ok bool, err error) {
	if db.isNew && !db.inTx {
		return a, false, nil
	}
	err = db.query("SELECT due, set_at, count, next_at, error FROM _weir_alarm WHERE failed = 0", func(s *sqlite.Stmt) error {
		a, ok = Alarm{s.ColumnInt64(0), s.ColumnInt64(1), s.ColumnInt(2), s.ColumnInt64(3), s.ColumnText(4)}, true
		return nil
	})
	return a, ok, db.appError(err)
}

// SetAlarm arms the alarm, or records a failed attempt of it; failed: it is given up, and only kept as a record.
func (db *DB) SetAlarm(a Alarm, failed bool) error {
	f := 0
	if failed {
		f = 1
	}
	return db.appError(db.write("INSERT OR REPLACE INTO _weir_alarm VALUES (1, ?, ?, ?, ?, ?, ?)", a.Due, a.SetAt, a.Count, a.Next, a.Error, f))
}

// ClearAlarm removes it.
func (db *DB) ClearAlarm() error { return db.appError(db.write("DELETE FROM _weir_alarm")) }
