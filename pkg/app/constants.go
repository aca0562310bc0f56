package app

import (
	"fmt"
	"reflect"

	"github.com/yuin/gopher-lua/ast"

	"weir/pkg/luavm"
)

// assignedConstants finds functions that assign to a local of a file's top level. Such a local is a constant: an
// object has a VM of its own, and at the gateway one VM serves many requests in turn, so that what a function writes
// there is seen by some later calls and not by others.
func assignedConstants(c *luavm.Chunk) []Mistake {
	s := &scopes{file: c.Name}
	s.push()
	s.block(c.AST)
	return s.found
}

type scopes struct {
	file  string
	stack []map[string]bool // by block, innermost last; true: a top-level local
	depth int               // of functions
	found []Mistake
}

func (s *scopes) push() { s.stack = append(s.stack, map[string]bool{}) }
func (s *scopes) pop()  { s.stack = s.stack[:len(s.stack)-1] }

func (s *scopes) local(names ...string) {
	for _, n := range names {
		s.stack[len(s.stack)-1][n] = s.depth == 0
	}
}

func (s *scopes) assigned(name string, line int) {
	for i := len(s.stack) - 1; i >= 0; i-- {
		if top, ok := s.stack[i][name]; ok {
			if top && s.depth > 0 {
				s.found = append(s.found, Mistake{s.file, line, fmt.Sprintf("a function assigns to %s, a local of the top level: it is a constant there, keep what changes in an object", name)})
			}
			return
		}
	}
}

func (s *scopes) block(stmts []ast.Stmt) {
	for _, st := range stmts {
		s.stmt(st)
	}
}

func (s *scopes) inner(stmts []ast.Stmt, names ...string) {
	s.push()
	s.local(names...)
	s.block(stmts)
	s.pop()
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
			if id, ok := e.(*ast.IdentExpr); ok {
				s.assigned(id.Value, st.Line())
			} else {
				s.expr(e)
			}
		}
	case *ast.FuncDefStmt:
		if id, ok := st.Name.Func.(*ast.IdentExpr); ok {
			s.assigned(id.Value, st.Line())
		}
		s.expr(st.Func)
	case *ast.DoBlockStmt:
		s.inner(st.Stmts)
	case *ast.WhileStmt:
		s.expr(st.Condition)
		s.inner(st.Stmts)
	case *ast.RepeatStmt:
		s.inner(st.Stmts)
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

func (s *scopes) exprs(list []ast.Expr) {
	for _, e := range list {
		s.expr(e)
	}
}

// expr looks for functions inside an expression.
func (s *scopes) expr(e ast.Expr) {
	if e == nil {
		return
	}
	if fn, ok := e.(*ast.FunctionExpr); ok {
		s.function(fn)
		return
	}
	s.children(reflect.ValueOf(e))
}

func (s *scopes) function(fn *ast.FunctionExpr) {
	s.depth++
	names := []string{}
	if fn.ParList != nil {
		names = fn.ParList.Names
	}
	s.inner(fn.Stmts, names...)
	s.depth--
}

func (s *scopes) children(v reflect.Value) {
	switch v.Kind() {
	case reflect.Interface, reflect.Pointer:
		if v.IsNil() {
			return
		}
		if fn, ok := v.Interface().(*ast.FunctionExpr); ok {
			s.function(fn)
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
