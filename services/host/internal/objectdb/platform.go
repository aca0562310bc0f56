package objectdb

import (
	"fmt"
	"strings"
	"weir/pkg/wire"

	"zombiezen.com/go/sqlite"
)

// exec runs one of the platform's statements that has no parameters and is not worth keeping.
func (db *DB) exec(sql string) error {
	s, _, err := db.conn.PrepareTransient(sql)
	if err != nil {
		return Cut(err)
	}
	defer s.Finalize()
	for {
		more, err := s.Step()
		if err != nil || !more {
			return Cut(err)
		}
	}
}

// Cut gives a statement's error that the call's deadline interrupted its code.
func Cut(err error) error {
	if sqlite.ErrCode(err).ToPrimary() == sqlite.ResultInterrupt || err != nil && strings.HasSuffix(err.Error(), "interrupted") {
		return wire.Errorf(wire.Timeout, "the statement was interrupted at the call's deadline")
	}
	return err
}

// stmt gives a platform's statement, prepared once.
func (db *DB) stmt(sql string) (*sqlite.Stmt, error) {
	if s := db.stmts[sql]; s != nil {
		return s, nil
	}
	s, _, err := db.conn.PrepareTransient(sql)
	if err != nil {
		return nil, Cut(err)
	}
	db.stmts[sql] = s
	return s, nil
}

// write runs a platform's statement that changes something.
func (db *DB) write(sql string, args ...any) error {
	db.wrote = true
	return db.query(sql, nil, args...)
}

// query runs a platform's statement with positional parameters: int64, uint64, int, string, []byte (BLOB) or nil.
func (db *DB) query(sql string, row func(*sqlite.Stmt) error, args ...any) error {
	s, err := db.stmt(sql)
	if err != nil {
		return err
	}
	for i, a := range args {
		switch a := a.(type) {
		case int64:
			s.BindInt64(i+1, a)
		case uint64:
			s.BindInt64(i+1, int64(a))
		case int:
			s.BindInt64(i+1, int64(a))
		case string:
			s.BindText(i+1, a)
		case []byte:
			s.BindBytes(i+1, a)
		case nil:
			s.BindNull(i + 1)
		default:
			panic(fmt.Sprintf("objectdb: cannot bind %T", a))
		}
	}
	for {
		more, err := s.Step()
		if err != nil {
			_ = s.Reset()
			return Cut(err)
		}
		if !more {
			return s.Reset()
		}
		if row != nil {
			if err := row(s); err != nil {
				_ = s.Reset()
				return err
			}
		}
	}
}
