package objectdb

import (
	"encoding/json"

	"zombiezen.com/go/sqlite"

	"weir/pkg/edge"
	"weir/pkg/wire"
)

// Following reads what the object durably knows of each publisher it follows or followed.
func (db *DB) Following() (map[string]edge.Cursor, error) {
	all := map[string]edge.Cursor{}
	if db.isNew {
		return all, nil
	}
	err := db.query("SELECT publisher, incarnation, version, edge_number, cursor, edges FROM _weir_following", func(s *sqlite.Stmt) error {
		c := edge.Cursor{Incarnation: s.ColumnText(1), Number: uint64(s.ColumnInt64(3)), At: uint64(s.ColumnInt64(4)),
			Set: edge.Set{Version: uint64(s.ColumnInt64(2)), Owner: db.Own}}
		if err := json.Unmarshal([]byte(s.ColumnText(5)), &c.Set.Edges); err != nil {
			return err
		}
		all[s.ColumnText(0)] = c
		return c.Set.Unpack()
	})
	if err != nil {
		return nil, db.broken("open", err)
	}
	err = db.query("SELECT publisher, incarnation, seq, since, count, next_at, error FROM _weir_attempts", func(s *sqlite.Stmt) error {
		if c := all[s.ColumnText(0)]; c.Incarnation == s.ColumnText(1) {
			c.Attempts = edge.Attempts{Seq: uint64(s.ColumnInt64(2)), Since: uint64(s.ColumnInt64(3)), Count: s.ColumnInt(4),
				Next: s.ColumnInt64(5), Error: s.ColumnText(6)}
			all[s.ColumnText(0)] = c
		}
		return nil
	})
	if err != nil {
		return nil, db.broken("open", err)
	}
	return all, nil
}

// SaveFollowing keeps a cursor whole, as an answer changes it.
func (db *DB) SaveFollowing(publisher string, c edge.Cursor) error {
	edges, err := wire.Encode(c.Set.Edges)
	if err != nil {
		return err
	}
	if err := db.write("INSERT OR REPLACE INTO _weir_following VALUES (?, ?, ?, ?, ?, ?)", publisher, c.Incarnation, c.Set.Version,
		c.Number, c.At, string(edges)); err != nil {
		return db.appError(err)
	}
	return db.SaveAttempts(publisher, c)
}

// SaveCursor keeps the position of an applied event, in the transaction of its handler; attempts are done with.
func (db *DB) SaveCursor(publisher string, at uint64, hadAttempts bool) error {
	if err := db.write("UPDATE _weir_following SET cursor = ? WHERE publisher = ?", at, publisher); err != nil {
		return db.appError(err)
	}
	if db.conn.Changes() != 1 {
		return wire.Errorf(wire.Internal, "%s has no cursor for %s", db.id, publisher)
	}
	if hadAttempts {
		return db.write("DELETE FROM _weir_attempts WHERE publisher = ?", publisher)
	}
	return nil
}

// SaveAttempts keeps the count of failed attempts, or removes it when there is none.
func (db *DB) SaveAttempts(publisher string, c edge.Cursor) error {
	if c.Attempts.Count == 0 {
		return db.write("DELETE FROM _weir_attempts WHERE publisher = ?", publisher)
	}
	t := c.Attempts
	return db.write("INSERT OR REPLACE INTO _weir_attempts VALUES (?, ?, ?, ?, ?, ?, ?)", publisher, c.Incarnation, t.Seq, t.Since,
		t.Count, t.Next, t.Error)
}
