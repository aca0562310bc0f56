package lualib

import (
	"github.com/google/uuid"
	lua "github.com/yuin/gopher-lua"

	"weir/pkg/luavm"
	"weir/pkg/value"
)

// maxJSON bounds the text that json takes and gives.
const maxJSON = 10 << 20

// What a byte of JSON costs, against one that is only read: work, and memory of the tables made of it.
const (
	jsonWork   = 8
	jsonMemory = 8
)

// jsonParse is json.parse(text): the value, by the rules of every boundary (VAL). Bad JSON raises.
func (l *library) jsonParse(L *lua.LState) int {
	s := text(L, 1, "json.parse")
	if len(s) > maxJSON {
		L.RaiseError("json.parse: %d bytes are more than the %d MiB it takes: parse it in parts", len(s), maxJSON>>20)
	}
	l.grow(jsonMemory * len(s))
	l.read(L, jsonWork*len(s))
	v, err := value.Decode(L, []byte(s), "json")
	if err != nil {
		luavm.Raise(L, err)
	}
	L.Push(v)
	return 1
}

// jsonStringify is json.stringify(value): canonical JSON.
func (l *library) jsonStringify(L *lua.LState) int {
	data, err := value.Encode(L.Get(1), "value", maxJSON)
	if err != nil {
		luavm.Raise(L, err)
	}
	l.build(L, "json.stringify", len(data))
	l.read(L, jsonWork*len(data))
	return give(L, string(data))
}

// jsonArray is json.array(): an empty table that encodes as [].
func jsonArray(L *lua.LState) int {
	L.Push(luavm.NewArray(L))
	return 1
}

// uuidV4 is uuid.v4(): random.
func uuidV4(L *lua.LState) int { return give(L, uuid.NewString()) }

// uuidV7 is uuid.v7(): random, and later ones sort after earlier ones.
func uuidV7(L *lua.LState) int {
	id, err := uuid.NewV7()
	if err != nil {
		L.RaiseError("uuid.v7: %s", err.Error())
	}
	return give(L, id.String())
}

// sqlBlob is sql.blob(bytes): binds as BLOB.
func sqlBlob(L *lua.LState) int {
	L.Push(value.NewBlob(L, text(L, 1, "sql.blob")))
	return 1
}
