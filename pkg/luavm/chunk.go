package luavm

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/ast"
	"github.com/yuin/gopher-lua/parse"
)

// Chunk is a parsed and compiled Lua file. It is immutable and may be run by many VMs concurrently.
type Chunk struct {
	Name  string             // as it stands in messages: "main.lua"
	AST   []ast.Stmt         // as parsed; do not change it
	Proto *lua.FunctionProto // compiled with the metered operators
}

// Compile parses and compiles a file. A mistake in it is a *SyntaxError.
func Compile(name string, src []byte) (c *Chunk, err error) {
	if len(src) > maxSource {
		return nil, &SyntaxError{File: name, Line: 1, Msg: fmt.Sprintf("the file is over %d bytes; split it", maxSource)}
	}
	defer func() {
		if r := recover(); r != nil {
			c, err = nil, &SyntaxError{File: name, Line: 1, Msg: fmt.Sprintf("the compiler can not take this file: %v", r)}
		}
	}()
	tree, err := parseFile(name, src)
	if err != nil {
		return nil, err
	}
	own, err := parseFile(name, src)
	if err != nil {
		return nil, err
	}
	rw := rewriter{}
	own = rw.block(own)
	if rw.deep > 0 {
		return nil, &SyntaxError{File: name, Line: rw.deep, Msg: "expressions or blocks are nested too deep"}
	}
	proto, err := lua.Compile(own, name)
	if err != nil {
		var ce *lua.CompileError
		if errors.As(err, &ce) {
			line := ce.Line
			if line < 1 { // gopher-lua does not say where there were too many
				line = max(1, lineOfLocal(own, new(int)))
			}
			return nil, &SyntaxError{File: name, Line: line, Msg: ce.Message}
		}
		return nil, &SyntaxError{File: name, Line: 1, Msg: err.Error()}
	}
	return &Chunk{Name: name, AST: tree, Proto: proto}, nil
}

func parseFile(name string, src []byte) ([]ast.Stmt, error) {
	tree, err := parse.Parse(bytes.NewReader(src), name)
	if err == nil {
		return tree, nil
	}
	var pe *parse.Error
	if !errors.As(err, &pe) {
		return nil, &SyntaxError{File: name, Line: 1, Msg: err.Error()}
	}
	line, near := pe.Pos.Line, pe.Token
	if line < 1 {
		line, near = 1+bytes.Count(bytes.TrimRight(src, "\r\n \t"), []byte("\n")), "<eof>"
	}
	msg := strings.TrimSpace(pe.Message)
	if near != "" {
		if len(near) > 40 {
			near = near[:40] + "..."
		}
		msg += " near '" + near + "'"
	}
	return nil, &SyntaxError{File: name, Line: line, Msg: msg}
}

// maxLocals is how many local variables a function may have at once.
const maxLocals = 200

// lineOfLocal is the line of a function's local variable that is one too many, 0 if there is none: of the chunk's own
// statements and their blocks. n is how many there are before.
func lineOfLocal(stmts []ast.Stmt, n *int) int {
	before := *n
	defer func() { *n = before }()
	for _, s := range stmts {
		var blocks [][]ast.Stmt
		switch s := s.(type) {
		case *ast.LocalAssignStmt:
			if *n += len(s.Names); *n > maxLocals {
				return s.Line()
			}
		case *ast.DoBlockStmt:
			blocks = [][]ast.Stmt{s.Stmts}
		case *ast.WhileStmt:
			blocks = [][]ast.Stmt{s.Stmts}
		case *ast.RepeatStmt:
			blocks = [][]ast.Stmt{s.Stmts}
		case *ast.IfStmt:
			blocks = [][]ast.Stmt{s.Then, s.Else}
		case *ast.NumberForStmt:
			blocks = [][]ast.Stmt{s.Stmts}
		case *ast.GenericForStmt:
			blocks = [][]ast.Stmt{s.Stmts}
		}
		for _, b := range blocks {
			if line := lineOfLocal(b, n); line > 0 {
				return line
			}
		}
	}
	return 0
}
