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
			return nil, &SyntaxError{File: name, Line: ce.Line, Msg: ce.Message}
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
