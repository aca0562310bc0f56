package luavm

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/yuin/gopher-lua/ast"
)

// The metered operators are functions under names that no Lua source can spell.
const (
	hidden     = "\x00"
	opConcat   = hidden + "concat"     // concat(a, b, c, …) is a .. b .. c …
	opConcatN  = hidden + "concatlist" // the same from a count and a table, for chains that registers can not hold
	opSet      = hidden + "set"        // set(t, k, v) is t[k] = v
	opKey      = hidden + "key"        // key(k) checks a key of a table constructor and returns it
	maxConcat  = 60                    // operands passed in registers
	maxFreeKey = 64                    // literal keys up to here need no check
)

// rewriter replaces `..` and stores under computed keys by calls of the metered operators.
type rewriter struct {
	depth int
	deep  int // line where the tree is too deep, 0 if nowhere
}

func (r *rewriter) block(list []ast.Stmt) []ast.Stmt {
	for i, s := range list {
		list[i] = r.stmt(s)
	}
	return list
}

func (r *rewriter) enter(line int) bool {
	if r.depth++; r.depth > maxTreeDepth && r.deep == 0 {
		r.deep = max(line, 1)
	}
	return r.deep == 0
}

func (r *rewriter) stmt(s ast.Stmt) ast.Stmt {
	defer func() { r.depth-- }()
	if !r.enter(s.Line()) {
		return s
	}
	switch s := s.(type) {
	case *ast.AssignStmt:
		r.exprs(s.Lhs)
		r.exprs(s.Rhs)
		return r.assign(s)
	case *ast.LocalAssignStmt:
		r.exprs(s.Exprs)
	case *ast.FuncCallStmt:
		s.Expr = r.expr(s.Expr)
	case *ast.DoBlockStmt:
		r.block(s.Stmts)
	case *ast.WhileStmt:
		s.Condition = r.expr(s.Condition)
		r.block(s.Stmts)
	case *ast.RepeatStmt:
		s.Condition = r.expr(s.Condition)
		r.block(s.Stmts)
	case *ast.IfStmt:
		s.Condition = r.expr(s.Condition)
		r.block(s.Then)
		r.block(s.Else)
	case *ast.NumberForStmt:
		s.Init, s.Limit, s.Step = r.expr(s.Init), r.expr(s.Limit), r.expr(s.Step)
		r.block(s.Stmts)
	case *ast.GenericForStmt:
		r.exprs(s.Exprs)
		r.block(s.Stmts)
	case *ast.FuncDefStmt:
		s.Name.Func, s.Name.Receiver = r.expr(s.Name.Func), r.expr(s.Name.Receiver)
		r.block(s.Func.Stmts)
	case *ast.ReturnStmt:
		r.exprs(s.Exprs)
	}
	return s
}

func (r *rewriter) exprs(list []ast.Expr) {
	for i, e := range list {
		list[i] = r.expr(e)
	}
}

func (r *rewriter) expr(e ast.Expr) ast.Expr {
	if e == nil {
		return nil
	}
	defer func() { r.depth-- }()
	if !r.enter(e.Line()) {
		return e
	}
	switch e := e.(type) {
	case *ast.AttrGetExpr:
		e.Object, e.Key = r.expr(e.Object), r.expr(e.Key)
	case *ast.TableExpr:
		for _, f := range e.Fields {
			f.Value = r.expr(f.Value)
			if f.Key != nil {
				if f.Key = r.expr(f.Key); !freeKey(f.Key) {
					f.Key = call(e, opKey, single(f.Key))
				}
			}
		}
	case *ast.FuncCallExpr:
		e.Func, e.Receiver = r.expr(e.Func), r.expr(e.Receiver)
		r.exprs(e.Args)
	case *ast.LogicalOpExpr:
		e.Lhs, e.Rhs = r.expr(e.Lhs), r.expr(e.Rhs)
	case *ast.RelationalOpExpr:
		e.Lhs, e.Rhs = r.expr(e.Lhs), r.expr(e.Rhs)
	case *ast.ArithmeticOpExpr:
		e.Lhs, e.Rhs = r.expr(e.Lhs), r.expr(e.Rhs)
	case *ast.UnaryMinusOpExpr:
		e.Expr = r.expr(e.Expr)
	case *ast.UnaryNotOpExpr:
		e.Expr = r.expr(e.Expr)
	case *ast.UnaryLenOpExpr:
		e.Expr = r.expr(e.Expr)
	case *ast.FunctionExpr:
		r.block(e.Stmts)
	case *ast.StringConcatOpExpr:
		return r.concat(e)
	}
	return e
}

// concat makes one call of a whole chain a .. b .. c, which is nested to the right.
func (r *rewriter) concat(e *ast.StringConcatOpExpr) ast.Expr {
	var list []ast.Expr
	var rest ast.Expr = e
	for {
		c, ok := rest.(*ast.StringConcatOpExpr)
		if !ok {
			break
		}
		list = append(list, single(r.expr(c.Lhs)))
		rest = c.Rhs
	}
	list = append(list, single(r.expr(rest)))
	if len(list) <= maxConcat {
		return call(e, opConcat, list...)
	}
	t := &ast.TableExpr{}
	place(t, e)
	for _, x := range list {
		t.Fields = append(t.Fields, &ast.Field{Value: x})
	}
	n := &ast.NumberExpr{Value: strconv.Itoa(len(list))}
	place(n, e)
	return call(e, opConcatN, n, t)
}

// assign replaces stores under computed keys, and keeps calls away from where they are compiled wrongly. A single one
// becomes set(t, k, v). Of several, targets and values are evaluated into locals first, as Lua does and gopher-lua does
// not: it compiles a, b = b, a into the targets' own registers.
func (r *rewriter) assign(s *ast.AssignStmt) ast.Stmt {
	if len(s.Lhs) == 1 && len(s.Rhs) == 1 {
		loosen(s.Rhs[0])
	}
	computed := len(s.Lhs) > 1 || len(s.Rhs) > 1
	for _, x := range s.Rhs {
		computed = computed || adjusted(x)
	}
	for _, l := range s.Lhs {
		if a, ok := l.(*ast.AttrGetExpr); ok && !freeKey(a.Key) {
			computed = true
		}
	}
	if !computed {
		return s
	}
	if a, ok := s.Lhs[0].(*ast.AttrGetExpr); ok && len(s.Lhs) == 1 && !freeKey(a.Key) {
		args := []ast.Expr{single(a.Object), single(a.Key)}
		for _, x := range s.Rhs {
			args = append(args, single(x))
		}
		return callStmt(s, args...)
	}
	targets, values := &ast.LocalAssignStmt{}, &ast.LocalAssignStmt{Exprs: s.Rhs}
	var stores []ast.Stmt
	local := func(e ast.Expr) ast.Expr {
		name := fmt.Sprintf("%st%d", hidden, len(targets.Names))
		targets.Names = append(targets.Names, name)
		targets.Exprs = append(targets.Exprs, single(e))
		return ident(s, name)
	}
	for i, l := range s.Lhs {
		name := fmt.Sprintf("%sv%d", hidden, i)
		values.Names = append(values.Names, name)
		value := ident(s, name)
		if a, ok := l.(*ast.AttrGetExpr); ok {
			obj := local(a.Object)
			if !freeKey(a.Key) {
				stores = append(stores, callStmt(s, obj, local(a.Key), value))
				continue
			}
			at := &ast.AttrGetExpr{Object: obj, Key: a.Key}
			place(at, s)
			l = at
		}
		st := &ast.AssignStmt{Lhs: []ast.Expr{l}, Rhs: []ast.Expr{value}}
		place(st, s)
		stores = append(stores, st)
	}
	place(targets, s)
	place(values, s)
	stmts := []ast.Stmt{values}
	if len(targets.Names) > 0 {
		stmts = []ast.Stmt{targets, values}
	}
	slices.Reverse(stores) // the last target first, as Lua 5.1 does it
	do := &ast.DoBlockStmt{Stmts: append(stmts, stores...)}
	place(do, s)
	return do
}

// adjusted says that e is a call for one value. Assigned to the last parameter of a function, such a call is compiled
// wrongly: the function takes the parameter's register before the arguments are read.
func adjusted(e ast.Expr) bool {
	c, ok := e.(*ast.FuncCallExpr)
	return ok && c.AdjustRet
}

// loosen makes such a call one for any number of values, where the place takes one anyway.
func loosen(e ast.Expr) {
	if c, ok := e.(*ast.FuncCallExpr); ok {
		c.AdjustRet = false
	}
}

// freeKey says that a store under this key can not make a table's array part large.
func freeKey(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.StringExpr, *ast.TrueExpr, *ast.FalseExpr:
		return true
	case *ast.NumberExpr:
		n, err := strconv.ParseFloat(e.Value, 64)
		return err == nil && n <= maxFreeKey
	}
	return false
}

// single adjusts an expression that could give many values to one.
func single(e ast.Expr) ast.Expr {
	switch e := e.(type) {
	case *ast.FuncCallExpr:
		e.AdjustRet = true
	case *ast.Comma3Expr:
		e.AdjustRet = true
	}
	return e
}

func call(at ast.PositionHolder, name string, args ...ast.Expr) *ast.FuncCallExpr {
	c := &ast.FuncCallExpr{Func: ident(at, name), Args: args, AdjustRet: true}
	place(c, at)
	return c
}

func callStmt(at ast.PositionHolder, args ...ast.Expr) ast.Stmt {
	c := &ast.FuncCallStmt{Expr: call(at, opSet, args...)}
	place(c, at)
	return c
}

func ident(at ast.PositionHolder, name string) *ast.IdentExpr {
	e := &ast.IdentExpr{Value: name}
	place(e, at)
	return e
}

func place(n, at ast.PositionHolder) {
	n.SetLine(at.Line())
	n.SetLastLine(at.LastLine())
}
