package value

import lua "github.com/yuin/gopher-lua"

// A table may stand in many places of one value. Writing it can take far longer
// than its bytes suggest, as emptied slots and null fields are looked at and
// give nothing, so the size limit alone would not bound the time. In a value of
// many tables each is therefore read once, and copied where it comes again.

// rememberFrom is the number of tables before which it is cheaper to read again.
const rememberFrom = 128

// written is where a table's JSON stands in the buffer.
type written struct {
	start, end int
	height     int // levels of nesting, its own included
}

// remember notes the JSON of a table that has been written.
func (e *encoder) remember(t *lua.LTable, w written) {
	if e.tables++; e.tables < rememberFrom {
		return
	}
	if e.done == nil {
		e.done = make(map[*lua.LTable]written)
	}
	e.done[t] = w
}

// repeat writes a table by copying it, if it is known and may stand here.
func (e *encoder) repeat(t *lua.LTable) bool {
	if e.tables < rememberFrom {
		return false
	}
	w, ok := e.done[t]
	if !ok || e.depth+w.height > MaxDepth || e.room(w.end-w.start) != nil {
		return false
	}
	e.deepest = max(e.deepest, e.depth+w.height)
	e.buf = append(e.buf, e.buf[w.start:w.end]...)
	return true
}
