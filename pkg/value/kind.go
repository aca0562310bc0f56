package value

import (
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// kind names what v is with its article: "a function", "a handle". Userdata
// whose Value has a method LuaKind() string is named by it.
func kind(v lua.LValue) string {
	name := v.Type().String()
	switch v := v.(type) {
	case *lua.LUserData:
		if named, ok := v.Value.(interface{ LuaKind() string }); ok {
			name = named.LuaKind()
		} else {
			return "userdata"
		}
	case *lua.LState:
		name = "coroutine"
	}
	if name != "" && strings.IndexByte("aeio", name[0]) >= 0 {
		return "an " + name
	}
	return "a " + name
}
