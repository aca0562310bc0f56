package lualib

import (
	"log/slog"

	lua "github.com/yuin/gopher-lua"

	"weir/pkg/app"
	"weir/pkg/luavm"
)

// library is what the functions in one VM know.
type library struct {
	vm  *luavm.VM
	log *slog.Logger
}

// Open gives the function that installs the library into an app's VM. Log lines of app code go to log.
func Open(log *slog.Logger) func(*app.Instance) error {
	return func(in *app.Instance) error {
		l := &library{vm: in.VM, log: log}
		for name, fns := range map[string]map[string]lua.LGFunction{
			"json": {"parse": l.jsonParse, "stringify": l.jsonStringify, "array": jsonArray},
			"uuid": {"v4": uuidV4, "v7": uuidV7},
			"sql":  {"blob": sqlBlob},
			"log": {"debug": l.logger(slog.LevelDebug), "info": l.logger(slog.LevelInfo),
				"warn": l.logger(slog.LevelWarn), "error": l.logger(slog.LevelError)},
			"jwt": {"sign": l.jwtSign, "verify": l.jwtVerify},
			"crypto": {"sha256": l.sha256, "hmac": l.hmac, "random": l.random, "equal": l.equal,
				"password_hash": l.passwordHash, "password_verify": l.passwordVerify},
			"base64": {"encode": l.base64Encode, "url_encode": l.base64URLEncode, "decode": l.base64Decode},
			"hex":    {"encode": l.hexEncode, "decode": l.hexDecode},
			"url": {"encode": l.urlEncode, "decode": l.urlDecode,
				"query": l.urlQuery, "parse_query": l.urlParseQuery},
		} {
			t := in.VM.L.NewTable()
			for n, fn := range fns {
				t.RawSetString(n, in.VM.L.NewFunction(fn))
			}
			if name == "json" {
				t.RawSetString("null", luavm.Null)
			}
			in.VM.SetGlobal(name, t)
		}
		return nil
	}
}
