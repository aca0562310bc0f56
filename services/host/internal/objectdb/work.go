package objectdb

import (
	"errors"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"weir/pkg/objectid"
)

// Work reads from an object's file, which nobody has open, what its wake list entry must say: whether it keeps events
// for followers, and when its alarm is due (Unix milliseconds, 0 for none).
func Work(path string) (id objectid.ID, events bool, due int64, err error) {
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadWrite)
	if err != nil {
		return id, false, 0, err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	name := ""
	for sql, read := range map[string]func(*sqlite.Stmt){
		"SELECT value FROM _weir_meta WHERE key = 'id'": func(s *sqlite.Stmt) { name = s.ColumnText(0) },
		"SELECT EXISTS (SELECT 1 FROM _weir_log) AND EXISTS (SELECT 1 FROM _weir_edges WHERE transport = 'object')": func(s *sqlite.Stmt) {
			events = s.ColumnBool(0)
		},
		"SELECT next_at FROM _weir_alarm WHERE failed = 0": func(s *sqlite.Stmt) { due = s.ColumnInt64(0) },
	} {
		if err := sqlitex.ExecuteTransient(conn, sql, &sqlitex.ExecOptions{ResultFunc: func(s *sqlite.Stmt) error { read(s); return nil }}); err != nil {
			return id, false, 0, err
		}
	}
	id, err = objectid.Parse(name)
	return id, events, due, err
}
