package lualib

import "testing"

// spec: HTTP-5
func TestBase64(t *testing.T) {
	w := open(t, "", nil)
	w.check(t, []luaCase{
		// RFC 4648, section 10
		{`base64.encode("")`, ""}, {`base64.encode("f")`, "Zg=="}, {`base64.encode("fo")`, "Zm8="}, {`base64.encode("foo")`, "Zm9v"},
		{`base64.encode("foob")`, "Zm9vYg=="}, {`base64.encode("fooba")`, "Zm9vYmE="}, {`base64.encode("foobar")`, "Zm9vYmFy"},
		{`base64.decode("")`, ""}, {`base64.decode("Zg==")`, "f"}, {`base64.decode("Zm8=")`, "fo"}, {`base64.decode("Zm9vYmFy")`, "foobar"},
		{`base64.decode("Zg")`, "f"}, {`base64.decode("Zm8")`, "fo"},
		{`base64.encode("\255\254\253\0")`, "//79AA=="}, {`base64.url_encode("\255\254\253\0")`, "__79AA"},
		{`hex.encode(base64.decode("//79AA=="))`, "fffefd00"}, {`hex.encode(base64.decode("__79AA"))`, "fffefd00"}, {`hex.encode(base64.decode("-_79AA=="))`, "fbfefd00"},
		{`base64.decode("Zm9v\r\nYmFy\n")`, "foobar"}, {`base64.decode("Zm9v\nYg==\n")`, "foob"},
		{`base64.decode("Zm9v*mFy")`, "nil|base64.decode: no base64 at byte 5"},
		{`base64.decode("Zm9vY")`, "nil|base64.decode: the end is missing: 5 digits"},
		{`base64.decode("Zg=")`, "nil|base64.decode: the padding is wrong: 2 digits and 1 ="},
		{`base64.decode("Zg===")`, "nil|base64.decode: the padding is wrong: 2 digits and 3 ="},
		{`base64.decode("Zg==Zg==")`, "nil|base64.decode: no base64 at byte 3"},
		{`base64.decode("Zh==")`, "nil|base64.decode: …"}, // bits that say nothing
		{`base64.decode("===")`, "nil|base64.decode: the padding is wrong: 0 digits and 3 ="},
		{`base64.decode(nil)`, "error: test.lua:1: base64.decode takes a string, not nil"},
		{`base64.encode(1)`, "error: test.lua:1: base64.encode takes a string, not a number"},
		{`base64.url_encode({})`, "error: test.lua:1: base64.url_encode takes a string, not a table"},
	})
}

// spec: HTTP-5
func TestHex(t *testing.T) {
	w := open(t, "", nil)
	w.check(t, []luaCase{
		{`hex.encode("\0\255az")`, "00ff617a"}, {`hex.encode("")`, ""},
		{`hex.decode("00ff617a") == "\0\255az"`, "true"}, {`hex.decode("4A4b")`, "JK"}, {`hex.decode("")`, ""},
		{`hex.decode("abc")`, "nil|hex.decode: an odd number of digits"},
		{`hex.decode("ab0g")`, "nil|hex.decode: no hex digits at byte 3"},
		{`hex.decode({})`, "error: test.lua:1: hex.decode takes a string, not a table"},
		{`hex.encode()`, "error: test.lua:1: hex.encode takes a string, not nil"},
	})
}

// spec: HTTP-5
func TestURL(t *testing.T) {
	w := open(t, "", nil)
	w.check(t, []luaCase{
		{`url.encode("a b&c=d/e?f+g#%")`, "a%20b%26c%3Dd%2Fe%3Ff%2Bg%23%25"},
		{`url.encode("AZaz09-_.~")`, "AZaz09-_.~"}, // RFC 3986, section 2.3
		{`url.encode("ü€\0")`, "%C3%BC%E2%82%AC%00"},
		{`url.decode("a%20b%2fc+d")`, "a b/c+d"},
		{`url.decode(url.encode("ü€ +%"))`, "ü€ +%"},
		{`url.decode("a%zz")`, `nil|url.decode: "%zz" at byte 2 of "a%zz" is no escape: % and two hex digits`},
		{`url.decode("%41%4")`, `nil|url.decode: "%4" at byte 4 of "%41%4" is no escape: % and two hex digits`},
		{`url.encode(1)`, "error: test.lua:1: url.encode takes a string, not a number"},
		{`url.decode(1)`, "error: test.lua:1: url.decode takes a string, not a number"},

		{`url.query({ q = "a b&", page = 2, deep = true, tag = { "x", "y" } })`, "deep=true&page=2&q=a+b%26&tag=x&tag=y"},
		{`url.query({})`, ""},
		{`url.query({ n = 1e15 })`, "n=1000000000000000"},
		{`url.query({ n = 0/0 })`, "error: bad value: n: nan is not …"},
		{`url.query({ "x" })`, "error: test.lua:1: url.query: the names must be strings, not a number"},
		{`url.query({ a = { {} } })`, `error: test.lua:1: url.query: "a" must be a string, a number, a boolean or an array of them, not a table`},
		{`url.query("a")`, `error: test.lua:1: url.query takes a table, not a string: url.query { page = 2, tag = { "a", "b" } }`},
		{`json.stringify(url.parse_query("?a=1&b=x+y%26&a=2&c&&=z"))`, `{"":"z","a":"2","b":"x y&","c":""}`},
		{`json.stringify(url.parse_query(""))`, `{}`},
		{`json.stringify(url.parse_query(url.query({ ["ü="] = "&" })))`, `{"ü=":"&"}`},
		{`url.parse_query("a=%")`, `nil|url.parse_query: "%" at byte 1 of "%" is no escape: % and two hex digits`},
		{`url.parse_query("%q1=")`, `nil|url.parse_query: "%q1" at byte 1 of "%q1" is no escape: % and two hex digits`},
		{`url.parse_query({})`, "error: test.lua:1: url.parse_query takes a string, not a table"},
	})
}
