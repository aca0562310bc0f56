package failure

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"weir/pkg/wire"
)

// hints say what to do about an error code.
var hints = map[wire.Code]string{
	wire.Overloaded:      "too many calls wait at this object, or in this process: spread the work over more objects, or try again a little later",
	wire.Unavailable:     "nothing was done; the same call may succeed a little later",
	wire.Timeout:         "it may have been done: look before doing it again. Two objects that wait for each other end like this too",
	wire.OutcomeUnknown:  "it may have been done: look before doing it again",
	wire.BudgetExceeded:  "split the work over several calls, or over an alarm that does a part each time",
	wire.MemoryLimit:     "keep less in one call: page through rows, and keep large things in the database",
	wire.DatabaseFull:    "delete rows, spread the data over more objects, or raise WEIR_LIMIT_DATABASE_BYTES",
	wire.LogFull:         "a follower does not take its events: `weir edges` of this object names it",
	wire.FollowRefused:   "the publisher decides who follows: its publishes policy, or its hooks.follow",
	wire.Cycle:           "an object that waits for a call cannot be called by it: publish an event instead, or pass what is needed as an argument",
	wire.TooDeep:         "shorten the chain of calls: publish an event where nobody needs the answer",
	wire.NoSuchClass:     "declare it with object \"Name\" { … }; names are case-sensitive",
	wire.MigrationFailed: "mend the migration: a new file that follows those which ran already; those never change",
	wire.Corrupt:         "the object's file is damaged and was left as it is; put a backup in its place",
}

// luaHints say what usually stands behind one of Lua's own errors.
var luaHints = []struct{ text, hint string }{
	{"attempt to call a non-function", "there is no function of this name here: a local function must stand above its use, a library may be called otherwise (see docs/lua.md)"},
	{"attempt to index a non-table object(nil)", "what stands before the dot or bracket is nil: a query that found no row gives nil, so does a missing field"},
	{"attempt to compare", "one side is nil or of another type: tonumber and tostring convert"},
	{"attempt to concatenate", "only strings and numbers are joined with ..; tostring converts"},
	{"cannot perform concat", "only strings and numbers are joined with ..; tostring converts"},
	{"cannot perform", "one side is nil or no number: tonumber converts"},
	{"stack overflow", "a function calls itself without an end"},
	{"is read-only", "globals cannot be assigned once the app has loaded: use local, or state for what lasts"},
}

func hint(e *wire.Error) string {
	if e.Code != "" {
		return hints[e.Code]
	}
	if text := noMethod(e); text != "" {
		return text
	}
	for _, h := range luaHints {
		if strings.Contains(e.Message, h.text) {
			return h.hint
		}
	}
	return ""
}

// methods are those of the platform's tables that an app calls most.
var methods = map[string][]string{
	"state": {"publish", "follow", "unfollow", "followers", "drop_followers", "set_alarm", "clear_alarm"},
	"conn":  {"send", "follow", "unfollow", "close"},
}

var onTable = regexp.MustCompile(`\b(state|conn):(\w+)`)

// noMethod names the method that is not there, if the line that failed calls just one of state or conn.
func noMethod(e *wire.Error) string {
	if !strings.Contains(e.Message, "attempt to call a non-function") || len(e.Trace) == 0 {
		return ""
	}
	calls := onTable.FindAllStringSubmatch(e.Trace[0].Source, -1)
	if len(calls) != 1 || slices.Contains(methods[calls[0][1]], calls[0][2]) {
		return ""
	}
	own := ""
	if calls[0][1] == "state" {
		own = ", and the class's own"
	}
	return fmt.Sprintf("%s has no method %q; it has %s%s", calls[0][1], calls[0][2], strings.Join(methods[calls[0][1]], ", "), own)
}
