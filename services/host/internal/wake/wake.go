// Package wake is the list of sleeping objects that have work: events that a follower has not confirmed, or an alarm.
// It is a small SQLite file in the data folder, so that even an emptied NATS loses nothing.
//
// An entry is written before the commit that makes it true, with the earlier of two alarm times, and Sync makes it
// durable before that commit is; it goes when the work is done. So an entry may say too much, and never too little. A
// List is safe for concurrent use.
package wake

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"
	"zombiezen.com/go/sqlite"

	"weir/pkg/objectid"
)

// Entry is what one object has to do.
type Entry struct {
	Events bool  // unconfirmed ones
	Due    int64 // of its alarm, Unix milliseconds; 0: none
}

// List is the wake list of one data folder.
type List struct {
	mu      sync.Mutex // guards all below, over writes to the file too: they are short and rare
	conn    *sqlite.Conn
	entries map[objectid.ID]Entry
	dirty   bool // entries were put that Sync has not made durable
	failed  error
	broken  chan struct{}   // closed when a sync has failed
	tried   map[string]bool // followers with attempts below
	path    string

	syncing sync.Mutex // one sync at a time; held over it
	wal     *os.File
	fresh   bool
}

// Fresh says that nobody has called Found on this list: what objects have to do must be read from their files.
func (l *List) Fresh() bool { return l.fresh }

// Found says that the list has what all objects have to do. A process that dies before begins anew.
func (l *List) Found() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fresh, l.dirty = false, true
	if err := l.exec("PRAGMA user_version = 1", nil); err != nil {
		return fmt.Errorf("wake: %w", err)
	}
	return nil
}

// Open opens the list. clean says whether the process that used it before had closed it.
func Open(path string) (l *List, clean bool, err error) {
	l = &List{entries: map[objectid.ID]Entry{}, path: path, broken: make(chan struct{})}
	if l.conn, err = sqlite.OpenConn(path, sqlite.OpenReadWrite|sqlite.OpenCreate); err != nil {
		return nil, false, fmt.Errorf("wake: open %s: %w", path, err)
	}
	conn := l.conn
	defer func() {
		if err != nil {
			_ = conn.Close()
			err = fmt.Errorf("%w (if the file is damaged, move it away with its -wal: the list is made again from the objects' files)", err)
		}
	}()
	version, sound := 0, ""
	if err = l.exec("PRAGMA user_version", func(s *sqlite.Stmt) { version = s.ColumnInt(0) }); err != nil {
		return nil, false, fmt.Errorf("wake: open %s: %w", path, err)
	}
	l.fresh = version == 0
	if err = l.exec("PRAGMA quick_check(1)", func(s *sqlite.Stmt) { sound = s.ColumnText(0) }); err == nil && sound != "ok" {
		err = errors.New(sound)
	}
	if err != nil {
		return nil, false, fmt.Errorf("wake: open %s: %w", path, err)
	}
	for _, sql := range []string{"PRAGMA locking_mode=EXCLUSIVE", "PRAGMA journal_mode=WAL", "PRAGMA synchronous=NORMAL",
		"CREATE TABLE IF NOT EXISTS wake (id TEXT PRIMARY KEY, events INTEGER NOT NULL, due INTEGER NOT NULL) STRICT, WITHOUT ROWID",
		"CREATE TABLE IF NOT EXISTS attempts (follower TEXT NOT NULL, publisher TEXT NOT NULL, seq INTEGER NOT NULL, count INTEGER NOT NULL, next_at INTEGER NOT NULL, PRIMARY KEY (follower, publisher)) STRICT, WITHOUT ROWID",
		"CREATE TABLE IF NOT EXISTS state (clean INTEGER NOT NULL) STRICT"} {
		if err = l.exec(sql, nil); err != nil {
			return nil, false, fmt.Errorf("wake: open %s: %w", path, err)
		}
	}
	if err = l.exec("SELECT clean FROM state", func(s *sqlite.Stmt) { clean = s.ColumnBool(0) }); err != nil {
		return nil, false, fmt.Errorf("wake: open %s: %w", path, err)
	}
	if err = l.exec("SELECT id, events, due FROM wake", func(s *sqlite.Stmt) {
		if id, e := objectid.Parse(s.ColumnText(0)); e == nil {
			l.entries[id] = Entry{s.ColumnBool(1), s.ColumnInt64(2)}
		}
	}); err != nil {
		return nil, false, fmt.Errorf("wake: read %s: %w", path, err)
	}
	l.tried = map[string]bool{}
	if err = l.exec("SELECT DISTINCT follower FROM attempts", func(s *sqlite.Stmt) { l.tried[s.ColumnText(0)] = true }); err != nil {
		return nil, false, fmt.Errorf("wake: read %s: %w", path, err)
	}
	if err = l.exec("DELETE FROM state", nil); err != nil {
		return nil, false, fmt.Errorf("wake: open %s: %w", path, err)
	}
	if l.wal, err = os.OpenFile(path+"-wal", os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return nil, false, fmt.Errorf("wake: open %s: %w", path, err)
	}
	l.dirty = true
	return l, clean, l.Sync()
}

// Broken is closed when a Sync has failed. Nothing is durable any more: the process must begin anew.
func (l *List) Broken() <-chan struct{} { return l.broken }

// All gives every entry.
func (l *List) All() map[objectid.ID]Entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make(map[objectid.ID]Entry, len(l.entries))
	for id, e := range l.entries {
		all[id] = e
	}
	return all
}

// Expect adds to an object's entry what a transaction is about to make true. It must come before the commit, and a
// Sync between it and the commit's own.
func (l *List) Expect(id objectid.ID, e Entry) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.entries[id]
	now.Events = now.Events || e.Events
	if e.Due != 0 && (now.Due == 0 || e.Due < now.Due) {
		now.Due = e.Due
	}
	if now == l.entries[id] {
		return nil
	}
	l.dirty = true
	return l.put(id, now)
}

// Settle sets an object's entry to what is durably true now.
func (l *List) Settle(id objectid.ID, e Entry) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e == l.entries[id] {
		return nil
	}
	return l.put(id, e)
}

func (l *List) put(id objectid.ID, e Entry) error {
	if l.conn == nil {
		return errors.New("wake: closed")
	}
	var err error
	if e == (Entry{}) {
		err = l.exec("DELETE FROM wake WHERE id = ?", nil, id.String())
	} else {
		err = l.exec("INSERT OR REPLACE INTO wake VALUES (?, ?, ?)", nil, id.String(), e.Events, e.Due)
	}
	if err != nil {
		return fmt.Errorf("wake: %s: %w", id, err) // and not remembered: whoever tries again writes
	}
	if e == (Entry{}) {
		delete(l.entries, id)
	} else {
		l.entries[id] = e
	}
	return nil
}

// Sync makes what was expected durable, if anything was.
func (l *List) Sync() error {
	l.syncing.Lock() // whoever waits here for another's sync needs none of its own if that came after its entry
	defer l.syncing.Unlock()
	l.mu.Lock()
	dirty, failed := l.dirty, l.failed
	l.dirty = false
	l.mu.Unlock()
	if failed != nil || !dirty {
		return failed
	}
	if err := unix.Fdatasync(int(l.wal.Fd())); err != nil {
		// Never tried again: nobody knows what a second sync would say of the first one's entries.
		l.mu.Lock()
		l.failed = fmt.Errorf("wake: sync: %w", err)
		l.mu.Unlock()
		close(l.broken)
		return l.failed
	}
	return nil
}

// Close closes the list. clean says that every object was put to sleep: the next process need not ask.
func (l *List) Close(clean bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn == nil {
		return nil
	}
	var err error
	if clean {
		err = l.exec("INSERT INTO state VALUES (1)", nil)
	}
	err = errors.Join(err, l.conn.Close())
	l.conn = nil
	return errors.Join(err, l.wal.Close())
}

// Attempts gives the failed attempts of an event at a follower that could not be opened, and so cannot keep them
// itself.
func (l *List) Attempts(follower, publisher string) (seq uint64, count int, next int64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	err = l.exec("SELECT seq, count, next_at FROM attempts WHERE follower = ? AND publisher = ?", func(s *sqlite.Stmt) {
		seq, count, next = uint64(s.ColumnInt64(0)), s.ColumnInt(1), s.ColumnInt64(2)
	}, follower, publisher)
	return seq, count, next, err
}

// SetAttempts keeps them; a count of 0 forgets them.
func (l *List) SetAttempts(follower, publisher string, seq uint64, count int, next int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tried[follower] = true
	if count == 0 {
		return l.exec("DELETE FROM attempts WHERE follower = ? AND publisher = ?", nil, follower, publisher)
	}
	return l.exec("INSERT OR REPLACE INTO attempts VALUES (?, ?, ?, ?, ?)", nil, follower, publisher, int64(seq), int64(count), next)
}

// Opened forgets the attempts of a follower that can be opened after all.
func (l *List) Opened(follower string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.tried[follower] {
		return nil
	}
	if err := l.exec("DELETE FROM attempts WHERE follower = ?", nil, follower); err != nil {
		return err
	}
	delete(l.tried, follower)
	return nil
}

// exec runs a statement under the mutex.
func (l *List) exec(sql string, row func(*sqlite.Stmt), args ...any) error {
	if l.conn == nil {
		return errors.New("wake: closed")
	}
	s, err := l.conn.Prepare(sql)
	if err != nil {
		return err
	}
	for i, a := range args {
		switch a := a.(type) {
		case string:
			s.BindText(i+1, a)
		case int64:
			s.BindInt64(i+1, a)
		case bool:
			s.BindBool(i+1, a)
		}
	}
	for {
		more, err := s.Step()
		if err != nil {
			_ = s.Reset()
			return err
		}
		if !more {
			return s.Reset()
		}
		if row != nil {
			row(s)
		}
	}
}
