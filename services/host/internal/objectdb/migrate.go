package objectdb

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"zombiezen.com/go/sqlite"

	"weir/pkg/crashpoint"
	"weir/pkg/wire"
)

// Migration is one .sql file of a class's folder.
type Migration struct {
	Name string
	SQL  string
}

// Migrate applies, in the transaction in progress, those of the class's migrations (sorted by name) that the object
// does not have.
func (db *DB) Migrate(all []Migration, at int64) error {
	applied := map[string]string{}
	last := ""
	if err := db.query("SELECT name, sha256 FROM _weir_migrations ORDER BY name", func(s *sqlite.Stmt) error {
		last = s.ColumnText(0)
		applied[last] = s.ColumnText(1)
		return nil
	}); err != nil {
		return db.broken("migrate", err)
	}
	for _, m := range all {
		hash := sha256.Sum256([]byte(m.SQL))
		sum := hex.EncodeToString(hash[:])
		switch was, ok := applied[m.Name]; {
		case ok && was == sum:
			continue
		case ok:
			return wire.Errorf(wire.MigrationFailed, "%s was changed after it was applied to %s: put it back and write a new file", m.Name, db.id)
		case m.Name < last:
			return wire.Errorf(wire.MigrationFailed, "%s sorts before %s, which is already applied to %s: give it a later name", m.Name, last, db.id)
		}
		if err := db.script(m); err != nil {
			return err
		}
		if err := db.write("INSERT INTO _weir_migrations VALUES (?, ?, ?)", m.Name, sum, at); err != nil {
			return db.broken("migrate", err)
		}
		crashpoint.Reached(crashpoint.Migrated)
	}
	return nil
}

// script runs the statements of one file.
func (db *DB) script(m Migration) error {
	rest := m.SQL
	fail := func(err error) error {
		text, line := wire.AsError(err).Message, 1+strings.Count(m.SQL[:len(m.SQL)-len(rest)], "\n")
		var l, c int
		if n, _ := fmt.Sscanf(text, "%d:%d: ", &l, &c); n == 2 {
			line += l - 1
			_, text, _ = strings.Cut(text, ": ")
		} else {
			line += strings.Count(rest[:strings.Index(rest, firstWord(rest))], "\n")
		}
		return wire.Errorf(wire.MigrationFailed, "%s:%d: %s", m.Name, line, text)
	}
	for !isEmpty(rest) {
		db.guard.app, db.guard.denied = true, ""
		s, after, err := db.prepareGuarded(rest)
		if err != nil {
			db.guard.app = false
			return fail(err)
		}
		for more := true; more && err == nil; {
			more, err = s.Step()
		}
		db.guard.app = false
		ddl := s.ddl
		_ = s.Finalize()
		if err == nil && ddl {
			err = db.checkSchema()
		}
		if err == nil && db.Ended() {
			err = fmt.Errorf("the statement ended the transaction")
		}
		if err != nil {
			return fail(db.appError(err))
		}
		rest = after
	}
	db.wrote = true
	return nil
}
