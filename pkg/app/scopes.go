package app

import (
	"reflect"

	"github.com/yuin/gopher-lua/ast"

	"weir/pkg/luavm"
)

// use is one place where a file reads or assigns a variable.
type use struct {
	name     string
	member   string // the field of it that is read; "": the variable itself
	line     int
	stands   scope
	inside   bool // a function
	assigned bool
}

// scope says what a name stands for where it is used.
type scope int

const (
	global   scope = iota
	topLevel       // a local of the file's top level
	local          // any other
)

// uses lists the variables that a file reads and assigns, but for the declarations of locals themselves.
func uses(c *luavm.Chunk) []use {
	s := &scopes{}
	s.inner(c.AST)
	return s.found
}

// scopes walks a file, and keeps in mind which locals are in sight.
type scopes struct {
	stack []map[string]scope // by block, innermost last
	depth int                // of functions
	found []use
}

func (s *scopes) local(names ...string) {
	stands := local
	if s.depth == 0 {
		stands = topLevel
	}
	for _, n := range names {
		s.stack[len(s.stack)-1][n] = stands
	}
}

func (s *scopes) use(name, member string, line int, assigned bool) {
	u := use{name: name, member: member, line: line, inside: s.depth > 0, assigned: assigned}
	for i := len(s.stack) - 1; i >= 0; i-- {
		if stands, ok := s.stack[i][name]; ok {
			u.stands = stands
			break
		}
	}
	s.found = append(s.found, u)
}

// inner walks a block with locals of its own; after, if it is not nil, still sees them.
func (s *scopes) inner(stmts []ast.Stmt, names ...string) { s.innerThen(stmts, nil, names...) }

func (s *scopes) innerThen(stmts []ast.Stmt, after ast.Expr, names ...string) {
	s.stack = append(s.stack, map[string]scope{})
	s.local(names...)
	for _, st := range stmts {
		s.stmt(st)
	}
	s.expr(after)
	s.stack = s.stack[:len(s.stack)-1]
}

func (s *scopes) stmt(st ast.Stmt) {
	switch st := st.(type) {
	case *ast.LocalAssignStmt:
		if len(st.Exprs) == 1 && len(st.Names) == 1 {
			if _, ok := st.Exprs[0].(*ast.FunctionExpr); ok {
				s.local(st.Names...) // a local function sees itself
			}
		}
		s.exprs(st.Exprs)
		s.local(st.Names...)
	case *ast.AssignStmt:
		s.exprs(st.Rhs)
		for _, e := range st.Lhs {
			s.target(e, st.Line())
		}
	case *ast.FuncDefStmt:
		if st.Name.Func != nil {
			s.target(st.Name.Func, st.Line())
			s.function(st.Func)
			return
		}
		s.expr(st.Name.Receiver)
		s.function(st.Func, "self")
	case *ast.DoBlockStmt:
		s.inner(st.Stmts)
	case *ast.WhileStmt:
		s.expr(st.Condition)
		s.inner(st.Stmts)
	case *ast.RepeatStmt:
		s.innerThen(st.Stmts, st.Condition)
	case *ast.IfStmt:
		s.expr(st.Condition)
		s.inner(st.Then)
		s.inner(st.Else)
	case *ast.NumberForStmt:
		s.exprs([]ast.Expr{st.Init, st.Limit, st.Step})
		s.inner(st.Stmts, st.Name)
	case *ast.GenericForStmt:
		s.exprs(st.Exprs)
		s.inner(st.Stmts, st.Names...)
	case *ast.FuncCallStmt:
		s.expr(st.Expr)
	case *ast.ReturnStmt:
		s.exprs(st.Exprs)
	}
}

// target is what an assignment writes to.
func (s *scopes) target(e ast.Expr, line int) {
	if id, ok := e.(*ast.IdentExpr); ok {
		s.use(id.Value, "", line, true)
		return
	}
	s.expr(e)
}

func (s *scopes) exprs(list []ast.Expr) {
	for _, e := range list {
		s.expr(e)
	}
}

func (s *scopes) expr(e ast.Expr) {
	switch e := e.(type) {
	case nil:
	case *ast.FunctionExpr:
		s.function(e)
	case *ast.IdentExpr:
		s.use(e.Value, "", e.Line(), false)
	case *ast.AttrGetExpr:
		of, ok := e.Object.(*ast.IdentExpr)
		if key, text := e.Key.(*ast.StringExpr); ok && text {
			s.use(of.Value, key.Value, of.Line(), false)
			return
		}
		s.expr(e.Object)
		s.expr(e.Key)
	default:
		s.children(reflect.ValueOf(e))
	}
}

// function walks a function's body; names are parameters that its text does not show.
func (s *scopes) function(fn *ast.FunctionExpr, names ...string) {
	s.depth++
	if fn.ParList != nil {
		names = append(names, fn.ParList.Names...)
		if fn.ParList.HasVargs {
			names = append(names, "arg")
		}
	}
	s.inner(fn.Stmts, names...)
	s.depth--
}

// children walks the expressions in the fields of a node.
func (s *scopes) children(v reflect.Value) {
	switch v.Kind() {
	case reflect.Interface, reflect.Pointer:
		if v.IsNil() {
			return
		}
		if e, ok := v.Interface().(ast.Expr); ok && v.Kind() == reflect.Interface {
			s.expr(e)
			return
		}
		s.children(v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				s.children(v.Field(i))
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			s.children(v.Index(i))
		}
	}
}
