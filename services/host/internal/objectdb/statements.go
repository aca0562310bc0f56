package objectdb

import (
	"container/list"
	"strings"

	"zombiezen.com/go/sqlite"

	"weir/pkg/wire"
)

// What of the app's statements is kept prepared per object; the least recently used goes first.
const (
	maxStatements = 32
	maxTextBytes  = 256 << 10 // of their texts: a prepared statement costs several times that
)

// appStatements keeps the app's prepared statements.
type appStatements struct {
	byText map[string]*list.Element
	order  *list.List // of *appStatement, the most recent first
	bytes  int        // of the texts
}

// appStatement is one of them, with what the guard saw when it was prepared.
type appStatement struct {
	*sqlite.Stmt
	sql         string
	writes, ddl bool
	failed      error
}

func newAppStatements() appStatements {
	return appStatements{byText: map[string]*list.Element{}, order: list.New()}
}

func (a *appStatements) clear() {
	for e := a.order.Front(); e != nil; e = e.Next() {
		_ = e.Value.(*appStatement).Finalize()
	}
	*a = newAppStatements()
}

// Step is sqlite's, and keeps the error.
func (s *appStatement) Step() (bool, error) {
	more, err := s.Stmt.Step()
	s.failed = err
	return more, err
}

func (s *appStatement) names() []string {
	names := make([]string, s.ColumnCount())
	for i := range names {
		names[i] = s.ColumnName(i)
	}
	return names
}

// prepare gives the statement of one text of app SQL. Call it with the guard on.
func (db *DB) prepare(sql string) (*appStatement, error) {
	if e := db.app.byText[sql]; e != nil {
		db.app.order.MoveToFront(e)
		return e.Value.(*appStatement), nil
	}
	if strings.IndexByte(sql, 0) >= 0 {
		return nil, wire.Errorf(wire.BadSQL, "a NUL byte in the statement")
	}
	stmt, rest, err := db.prepareGuarded(sql)
	if err != nil {
		return nil, err
	}
	if stmt.Stmt.ColumnCount() == 0 && isEmpty(sql) {
		_ = stmt.Finalize()
		return nil, wire.Errorf(wire.BadSQL, "no statement in %s", short(sql))
	}
	if !isEmpty(rest) {
		_ = stmt.Finalize()
		return nil, wire.Errorf(wire.BadSQL, "more than one statement: give them to exec one by one; the second is %s", short(rest))
	}
	db.app.byText[sql] = db.app.order.PushFront(stmt)
	db.app.bytes += len(sql)
	for db.app.order.Len() > maxStatements || db.app.bytes > maxTextBytes && db.app.order.Len() > 1 {
		last := db.app.order.Back()
		old := db.app.order.Remove(last).(*appStatement)
		delete(db.app.byText, old.sql)
		db.app.bytes -= len(old.sql)
		_ = old.Finalize()
	}
	return stmt, nil
}

// prepareGuarded prepares the first statement of sql and gives what follows it.
func (db *DB) prepareGuarded(sql string) (*appStatement, string, error) {
	g := &db.guard
	g.writes, g.ddl, g.drops = false, false, false
	if word := strings.ToUpper(firstWord(sql)); word == "VACUUM" {
		return nil, "", wire.Errorf(wire.BadSQL, "VACUUM is not available")
	}
	s, trailing, err := db.conn.PrepareTransient(sql)
	if err != nil {
		return nil, "", db.appError(err)
	}
	return &appStatement{Stmt: s, sql: sql, writes: g.writes, ddl: g.ddl}, sql[len(sql)-trailing:], nil
}

// isEmpty says whether there is no statement in the text: only space, comments and semicolons.
func isEmpty(sql string) bool { return firstWord(sql) == "" }

// firstWord gives the first word (or character) after space, comments and semicolons.
func firstWord(sql string) string {
	for {
		sql = strings.TrimLeft(sql, " \t\r\n\v\f;\ufeff") // what SQLite takes for space
		switch {
		case strings.HasPrefix(sql, "--"):
			_, rest, ok := strings.Cut(sql, "\n")
			if !ok {
				return ""
			}
			sql = rest
		case strings.HasPrefix(sql, "/*"):
			_, rest, ok := strings.Cut(sql[2:], "*/")
			if !ok {
				return ""
			}
			sql = rest
		default:
			end := strings.IndexFunc(sql, func(r rune) bool { return (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') })
			if end == 0 {
				end = 1
			}
			if end < 0 {
				end = len(sql)
			}
			return sql[:end]
		}
	}
}
