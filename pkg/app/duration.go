package app

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

var units = []struct {
	suffix string
	ms     float64
}{{"ms", 1}, {"s", 1000}, {"m", 60_000}, {"h", 3_600_000}, {"d", 86_400_000}}

// maxDuration is a thousand years: what is longer is a mistake.
const maxDuration = 1000 * 366 * 86_400_000

// Duration reads a Lua duration: a string such as "10m" (a number and ms, s, m, h or d), or a number of seconds. It
// gives milliseconds, at least 1.
func Duration(v lua.LValue) (int64, error) {
	var ms float64
	switch v := v.(type) {
	case lua.LNumber:
		ms = float64(v) * 1000
	case lua.LString:
		text, ok := string(v), false
		for _, u := range units {
			number, found := strings.CutSuffix(text, u.suffix)
			f, err := strconv.ParseFloat(number, 64)
			if found && err == nil && !strings.ContainsAny(number, "xXpP_") {
				ms, ok = f*u.ms, true
				break
			}
		}
		if !ok {
			return 0, fmt.Errorf("%q is no duration: write a number and ms, s, m, h or d, as in \"10m\", or a number of seconds", text)
		}
	default:
		return 0, fmt.Errorf("a duration is a string such as \"10m\" or a number of seconds, not a %s", v.Type())
	}
	if math.IsNaN(ms) || math.IsInf(ms, 0) || ms <= 0 || ms > maxDuration {
		return 0, fmt.Errorf("a duration must be positive and finite, not %s", v.String())
	}
	return max(1, int64(math.Ceil(ms))), nil
}
