package object

import (
	"fmt"

	lua "github.com/yuin/gopher-lua"

	"weir/pkg/luavm"
	"weir/pkg/value"
	"weir/pkg/wire"
	"weir/services/host/internal/objectdb"
)

func alarmAt(due, set int64) objectdb.Alarm { return objectdb.Alarm{Due: due, SetAt: set, Next: due} }

// db is the object's database, for what may take long: whose turn it is, is another call's meanwhile.
func (s *stateBinding) db() *objectdb.DB {
	s.a.t.meter.EndTurn()
	return s.a.db
}

// sqlExec is state.sql:exec(sql, params?).
func (s *stateBinding) sqlExec(L *lua.LState) int {
	sql, params := s.sqlArgs(L)
	n, err := s.db().Exec(sql, params)
	if err != nil {
		s.sqlRaise(L, err)
	}
	L.Push(lua.LNumber(n))
	return 1
}

// sqlQuery is state.sql:query(sql, params?): an array of rows.
func (s *stateBinding) sqlQuery(L *lua.LState) int {
	sql, params := s.sqlArgs(L)
	rows, err := s.db().Query(sql, params, false)
	if err != nil {
		s.sqlRaise(L, err)
	}
	s.a.t.meter.Work(int64(len(rows)))
	t := luavm.NewArray(L)
	for i, row := range rows {
		t.RawSetInt(i+1, s.row(L, row))
	}
	L.Push(t)
	return 1
}

// sqlQueryOne is state.sql:query_one(sql, params?): the first row or nil.
func (s *stateBinding) sqlQueryOne(L *lua.LState) int {
	sql, params := s.sqlArgs(L)
	rows, err := s.db().Query(sql, params, true)
	if err != nil {
		s.sqlRaise(L, err)
	}
	if len(rows) == 0 {
		L.Push(lua.LNil)
		return 1
	}
	L.Push(s.row(L, rows[0]))
	return 1
}

func (s *stateBinding) sqlRaise(L *lua.LState, err error) {
	if s.a.db.Ended() {
		// Whatever the app makes of it, the call fails.
		s.a.t.meter.Cut(wire.AsError(err))
	}
	luavm.Raise(L, err)
}

func (s *stateBinding) row(L *lua.LState, row objectdb.Row) lua.LValue {
	t := L.CreateTable(0, len(row.Values))
	built := 0
	for i, c := range row.Values {
		v, err := value.FromSQL(c, row.Names[i])
		if err != nil {
			luavm.Raise(L, err)
		}
		if v != lua.LNil {
			t.RawSetString(row.Names[i], v)
		}
		built += len(c.Text) + 32
	}
	s.a.t.meter.Built(int64(built))
	return t
}

// sqlArgs reads a statement and its parameters.
func (s *stateBinding) sqlArgs(L *lua.LState) (string, objectdb.Params) {
	var p objectdb.Params
	sql, ok := L.Get(2).(lua.LString)
	if !ok {
		luavm.Raise(L, wire.Errorf(wire.BadValue, "a statement is a string, not a %s", L.Get(2).Type()))
	}
	switch v := L.Get(3).(type) {
	case *lua.LNilType:
	case *lua.LTable:
		if err := sqlParams(v, &p); err != nil {
			luavm.Raise(L, err)
		}
	default:
		luavm.Raise(L, wire.Errorf(wire.BadValue, "parameters are a table, { … }, not a %s", v.Type()))
	}
	return string(sql), p
}

// maxPosition bounds the positions of parameters, as SQLite's own limit does.
const maxPosition = 1000

func sqlParams(t *lua.LTable, p *objectdb.Params) (err error) {
	t.ForEach(func(k, v lua.LValue) {
		if err != nil {
			return
		}
		switch k := k.(type) {
		case lua.LNumber:
			i := int(k)
			if lua.LNumber(i) != k || i < 1 || i > maxPosition || p.Names != nil {
				err = wire.Errorf(wire.BadValue, "parameters are positions from 1 to %d, or names: not %v", maxPosition, k)
				return
			}
			for len(p.Positions) < i {
				p.Positions = append(p.Positions, value.Column{})
			}
			p.Positions[i-1], err = value.ToSQL(v, fmt.Sprintf("parameter %d", i))
		case lua.LString:
			if p.Positions != nil {
				err = wire.Errorf(wire.BadValue, "parameters are positions or names, not both")
				return
			}
			if p.Names == nil {
				p.Names = map[string]value.Column{}
			}
			p.Names[string(k)], err = value.ToSQL(v, "parameter "+string(k))
		default:
			err = wire.Errorf(wire.BadValue, "a parameter has a position or a name, not a %s", k.Type())
		}
	})
	return err
}
