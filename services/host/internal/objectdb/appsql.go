package objectdb

import (
	"errors"
	"fmt"
	"strings"

	"zombiezen.com/go/sqlite"

	"weir/pkg/value"
	"weir/pkg/wire"
)

// Limits of one query (VAL-5).
const (
	MaxRows      = 10_000
	MaxRowsBytes = 8 << 20
)

// Params are the parameters of an app's statement: positions, where a missing one binds NULL, or names.
type Params struct {
	Positions []value.Column
	Names     map[string]value.Column
}

// Row is one row of a result.
type Row struct {
	Names  []string // shared by the rows of a result
	Values []value.Column
}

// Exec runs one statement of the app and gives the number of rows it changed.
func (db *DB) Exec(sql string, p Params) (int, error) {
	changes := 0
	err := db.run(sql, p, func(s *appStatement) error {
		for {
			if more, err := s.Step(); err != nil || !more {
				break
			}
		}
		return nil
	}, &changes)
	return changes, err
}

// Query runs one statement of the app and gives its rows; first: only the first one.
func (db *DB) Query(sql string, p Params, first bool) (rows []Row, err error) {
	err = db.run(sql, p, func(s *appStatement) error {
		var names []string // known after the first step: a changed schema is noticed by it
		size := 0
		for {
			more, err := s.Step()
			if err != nil || !more {
				return nil
			}
			if names == nil {
				names = s.names()
			}
			if len(rows) == MaxRows {
				return wire.Errorf(wire.BadValue, "the query gives more than %d rows: use LIMIT and ask again", MaxRows)
			}
			if first && len(rows) == 1 {
				continue // run to its end, as RETURNING needs
			}
			row := Row{Names: names, Values: make([]value.Column, len(names))}
			for i := range names {
				row.Values[i] = column(s.Stmt, i)
				size += 16 + len(names[i]) + len(row.Values[i].Text)
			}
			if size > MaxRowsBytes {
				return wire.Errorf(wire.BadValue, "the query gives more than %d MiB: use LIMIT and ask again", MaxRowsBytes>>20)
			}
			rows = append(rows, row)
			if first && !s.writes {
				return nil
			}
		}
	}, nil)
	return rows, err
}

func column(s *sqlite.Stmt, i int) value.Column {
	switch s.ColumnType(i) {
	case sqlite.TypeInteger:
		return value.Column{Kind: value.Integer, Int: s.ColumnInt64(i)}
	case sqlite.TypeFloat:
		return value.Column{Kind: value.Float, Float: s.ColumnFloat(i)}
	case sqlite.TypeText:
		return value.Column{Kind: value.Text, Text: s.ColumnText(i)}
	case sqlite.TypeBlob:
		b := make([]byte, s.ColumnLen(i))
		s.ColumnBytes(i, b)
		return value.Column{Kind: value.Blob, Text: string(b)}
	}
	return value.Column{Kind: value.Null}
}

// run prepares, binds and steps one statement under the guard, and sees to what it may have done.
func (db *DB) run(sql string, p Params, step func(*appStatement) error, changes *int) error {
	if db.Ended() {
		return wire.Errorf(wire.BadSQL, "SQLite ended the transaction; the call fails")
	}
	db.guard.app, db.guard.denied = true, ""
	defer func() { db.guard.app = false }()
	s, err := db.prepare(sql)
	if err != nil {
		return err
	}
	if err := s.bind(p); err != nil {
		_ = s.ClearBindings()
		return err
	}
	if s.writes {
		db.wrote = true
	}
	err = step(s)
	if e := s.failed; err == nil && e != nil {
		err = db.appError(e)
	}
	s.failed = nil
	if changes != nil && err == nil {
		if s.writes && !s.ddl {
			*changes = db.conn.Changes()
		}
	}
	if e := s.Reset(); err == nil && e != nil {
		err = db.appError(e)
	}
	_ = s.ClearBindings()
	if s.ddl && err == nil {
		db.guard.app = false
		err = db.checkSchema()
	}
	if db.Ended() && err == nil {
		err = wire.Errorf(wire.BadSQL, "the statement ended the transaction: the call fails and nothing of it is kept")
	}
	return err
}

// appError gives an app's SQL error its code.
func (db *DB) appError(err error) error {
	if err == nil {
		return nil
	}
	err = Cut(err)
	var coded *wire.Error
	if errors.As(err, &coded) {
		return err
	}
	if why := db.guard.denied; why != "" {
		db.guard.denied = ""
		return wire.Errorf(wire.BadSQL, "%s", why)
	}
	switch sqlite.ErrCode(err).ToPrimary() {
	case sqlite.ResultFull:
		return wire.Errorf(wire.DatabaseFull, "%s holds %d MiB: delete something, or raise WEIR_LIMIT_DATABASE_BYTES", db.id, db.o.MaxBytes>>20)
	case sqlite.ResultCorrupt, sqlite.ResultNotADB:
		return wire.Errorf(wire.Corrupt, "the file of %s is damaged: %v", db.id, err)
	case sqlite.ResultIOErr, sqlite.ResultCantOpen, sqlite.ResultReadOnly:
		return wire.Errorf(wire.Unavailable, "the file of %s: %v", db.id, err)
	}
	text := err.Error()
	for _, noise := range []string{"sqlite: step: ", "sqlite: prepare: ", "sqlite: "} {
		text = strings.TrimPrefix(text, noise)
	}
	return wire.Errorf(wire.BadSQL, "%s", strings.Replace(text, "SQL logic error: ", "", 1))
}

// checkSchema runs after app SQL changed the schema: what the authorizer is not told. A new name of a table, and the
// target of a foreign key.
func (db *DB) checkSchema() error {
	db.ddl = true
	bad := ""
	err := db.query(`SELECT 'the name ' || name FROM (SELECT name, row_number() OVER () AS n FROM sqlite_schema
			WHERE name LIKE '\_weir\_%' ESCAPE '\') WHERE n > ?
		UNION ALL SELECT 'a foreign key to ' || f."table" FROM sqlite_schema m, pragma_foreign_key_list(m.name) f
			WHERE m.type = 'table' AND m.name NOT LIKE '\_weir\_%' ESCAPE '\' AND f."table" LIKE '\_weir\_%' ESCAPE '\'`, func(s *sqlite.Stmt) error {
		bad = s.ColumnText(0)
		return nil
	}, ownNames)
	if err != nil {
		return db.appError(err)
	}
	if bad != "" {
		db.ended = true // there is no statement to undo alone: the call fails
		return wire.Errorf(wire.BadSQL, "%s is the platform's: names that start with _weir_ cannot be used", bad)
	}
	return nil
}

// bind binds all parameters; one that is missing is NULL, one that nothing uses is an error.
func (s *appStatement) bind(p Params) error {
	n := s.BindParamCount()
	if p.Names == nil {
		if len(p.Positions) > n {
			return wire.Errorf(wire.BadValue, "%d parameters for %d places in: %s", len(p.Positions), n, short(s.sql))
		}
		for i := range n {
			if i < len(p.Positions) {
				bindOne(s.Stmt, i+1, p.Positions[i])
			} else {
				s.BindNull(i + 1)
			}
		}
		return nil
	}
	used := 0
	for i := range n {
		name := s.BindParamName(i + 1)
		if name == "" {
			return wire.Errorf(wire.BadValue, "a `?` needs positional parameters, but names were given in: %s", short(s.sql))
		}
		c, ok := p.Names[name[1:]]
		if !ok {
			s.BindNull(i + 1)
			continue
		}
		used++
		bindOne(s.Stmt, i+1, c)
	}
	if used < len(p.Names) {
		for name := range p.Names {
			if !s.hasName(name) {
				return wire.Errorf(wire.BadValue, "no :%s in: %s", name, short(s.sql))
			}
		}
	}
	return nil
}

func (s *appStatement) hasName(name string) bool {
	for i := range s.BindParamCount() {
		if n := s.BindParamName(i + 1); n != "" && n[1:] == name {
			return true
		}
	}
	return false
}

func bindOne(s *sqlite.Stmt, i int, c value.Column) {
	switch c.Kind {
	case value.Integer:
		s.BindInt64(i, c.Int)
	case value.Float:
		s.BindFloat(i, c.Float)
	case value.Text:
		s.BindText(i, c.Text)
	case value.Blob:
		if c.Text == "" {
			s.BindZeroBlob(i, 0)
		} else {
			s.BindBytes(i, []byte(c.Text))
		}
	default:
		s.BindNull(i)
	}
}

func short(sql string) string {
	sql = strings.Join(strings.Fields(sql), " ")
	if len(sql) > 80 {
		sql = sql[:77] + "..."
	}
	return fmt.Sprintf("%q", sql)
}
