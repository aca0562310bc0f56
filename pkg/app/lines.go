package app

import (
	"reflect"

	"github.com/yuin/gopher-lua/ast"

	"weir/pkg/luavm"
)

// lineIndex knows the lines of declarations and of the keys in them, from the parsed files: a table that a program
// has built no longer has any.
type lineIndex struct{ found map[string][]*declaration }

// declaration is where one `object "Name" { … }` stands, with its keys.
type declaration struct {
	at    place
	keys  map[string]int
	subs  map[[2]string]int
	taken bool
}

func newLineIndex() *lineIndex { return &lineIndex{map[string][]*declaration{}} }

func (x *lineIndex) declares(kind, name string) bool { return len(x.found[kind+" "+name]) > 0 }

// next gives the declaration that is being loaded: the first of its kind and name that was not taken yet.
func (x *lineIndex) next(kind, name string, here place) *declaration {
	for _, d := range x.found[kind+" "+name] {
		if !d.taken {
			d.taken = true
			return d
		}
	}
	return &declaration{at: here}
}

func (d *declaration) key(k string) place {
	if line, ok := d.keys[k]; ok {
		return place{d.at.file, line}
	}
	return d.at
}

func (d *declaration) sub(section, k string) place {
	if line, ok := d.subs[[2]string{section, k}]; ok {
		return place{d.at.file, line}
	}
	return d.key(section)
}

// add finds the declarations of a file.
func (x *lineIndex) add(c *luavm.Chunk) {
	walk(reflect.ValueOf(c.AST), func(n any) {
		call, ok := n.(*ast.FuncCallExpr)
		if !ok || len(call.Args) != 1 {
			return
		}
		head, ok := call.Func.(*ast.FuncCallExpr)
		if !ok || len(head.Args) != 1 {
			return
		}
		word, ok1 := head.Func.(*ast.IdentExpr)
		name, ok2 := head.Args[0].(*ast.StringExpr)
		table, ok3 := call.Args[0].(*ast.TableExpr)
		if !ok1 || !ok2 || !ok3 || word.Value != "object" && word.Value != "connection" {
			return
		}
		d := &declaration{at: place{c.Name, head.Line()}, keys: map[string]int{}, subs: map[[2]string]int{}}
		for _, f := range table.Fields {
			key, ok := f.Key.(*ast.StringExpr)
			if !ok {
				continue
			}
			d.keys[key.Value] = lineOf(key, f.Value)
			inner, ok := f.Value.(*ast.TableExpr)
			if !ok {
				continue
			}
			for _, g := range inner.Fields {
				if k, ok := g.Key.(*ast.StringExpr); ok {
					d.subs[[2]string{key.Value, k.Value}] = lineOf(k, g.Value)
				} else if s, ok := g.Value.(*ast.StringExpr); ok && g.Key == nil {
					d.subs[[2]string{key.Value, s.Value}] = s.Line()
				}
			}
		}
		k := word.Value + " " + name.Value
		x.found[k] = append(x.found[k], d)
	})
}

func lineOf(key, value ast.Expr) int {
	if key.Line() > 0 {
		return key.Line()
	}
	return value.Line()
}

// walk visits every node of a parsed file.
func walk(v reflect.Value, visit func(any)) {
	switch v.Kind() {
	case reflect.Interface, reflect.Pointer:
		if v.IsNil() {
			return
		}
		if v.Kind() == reflect.Pointer {
			visit(v.Interface())
		}
		walk(v.Elem(), visit)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				walk(v.Field(i), visit)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			walk(v.Index(i), visit)
		}
	}
}
