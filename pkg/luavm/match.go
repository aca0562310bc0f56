package luavm

import "errors"

const (
	maxMatchDepth = 200  // nested choices, as in Lua
	stepsPerWork  = 4    // matcher steps that cost one instruction
	stepsPerLook  = 4096 // matcher steps between two looks at the meter
)

var (
	errComplex = errors.New("pattern too complex")
	errStopped = errors.New("stopped")
)

type capture struct {
	from, to int // to is capPosition for a position capture
}

const capPosition = -1

// matcher matches a compiled pattern against one subject. It is a backtracking matcher, exponential at worst as Lua's
// is, so it counts its steps: they are charged to the meter, and it stops as soon as that is done.
type matcher struct {
	s      string
	p      *pattern
	m      *Meter
	caps   [maxCaptures]capture
	depth  int
	steps  int
	failed error // why matching stopped, instead of a result
}

// tick counts n steps and says whether to go on.
func (m *matcher) tick(n int) bool {
	if m.steps += n; m.steps >= stepsPerLook {
		m.settle()
		if m.m.Err() != nil {
			m.failed = errStopped
		}
	}
	return m.failed == nil
}

// settle charges the steps counted so far.
func (m *matcher) settle() {
	m.m.Work(int64(m.steps / stepsPerWork))
	m.steps %= stepsPerWork
}

// at matches the whole pattern at a position and returns the end, or -1.
func (m *matcher) at(pos int) int {
	m.depth = 0
	return m.run(0, pos)
}

// search matches at pos or the first later position that fits.
func (m *matcher) search(pos int) (from, to int) {
	for ; pos <= len(m.s); pos++ {
		if pos = m.skip(pos); m.failed != nil {
			break
		}
		if to := m.at(pos); to >= 0 {
			return pos, to
		}
		if m.failed != nil || m.p.anchored {
			break
		}
	}
	return -1, -1
}

// skip moves on to the next position where a pattern that starts with a byte can start.
func (m *matcher) skip(pos int) int {
	if m.p.anchored || len(m.p.steps) == 0 {
		return pos
	}
	st := &m.p.steps[0]
	if st.kind != stepOne || st.rep != once && st.rep != plus {
		return pos
	}
	from := pos
	for pos < len(m.s) && !st.set.has(m.s[pos]) {
		pos++
	}
	m.tick((pos - from) / 4)
	return pos
}

// run matches the steps from i on at pos.
func (m *matcher) run(i, pos int) int {
	if m.depth++; m.depth > maxMatchDepth {
		m.failed = errComplex
		return -1
	}
	end := m.walk(i, pos)
	m.depth--
	return end
}

func (m *matcher) walk(i, pos int) int {
	for ; i < len(m.p.steps); i++ {
		if !m.tick(1) {
			return -1
		}
		st := &m.p.steps[i]
		switch st.kind {
		case stepOne:
			if st.rep != once {
				return m.repeated(st, i, pos)
			}
			if pos >= len(m.s) || !st.set.has(m.s[pos]) {
				return -1
			}
			pos++
		case stepOpen:
			m.caps[st.n].from = pos
		case stepClose:
			m.caps[st.n].to = pos
		case stepPosition:
			m.caps[st.n] = capture{pos, capPosition}
		case stepBack:
			pos = m.again(m.caps[st.n], pos)
		case stepBalance:
			pos = m.balance(st, pos)
		case stepFrontier:
			var before, after byte
			if pos > 0 {
				before = m.s[pos-1]
			}
			if pos < len(m.s) {
				after = m.s[pos]
			}
			if st.set.has(before) || !st.set.has(after) {
				return -1
			}
		case stepEnd:
			if pos != len(m.s) {
				return -1
			}
		}
		if pos < 0 {
			return -1
		}
	}
	return pos
}

// repeated matches a step with a suffix and then the rest. The captures need no undoing between tries: a later try sets
// every capture of the rest again before anything reads it.
func (m *matcher) repeated(st *step, i, pos int) int {
	if st.rep == lazy {
		for {
			if end := m.run(i+1, pos); end >= 0 || m.failed != nil {
				return end
			}
			if pos >= len(m.s) || !st.set.has(m.s[pos]) || !m.tick(1) {
				return -1
			}
			pos++
		}
	}
	most, least := len(m.s)-pos, 0
	if st.rep == maybe {
		most = min(most, 1)
	}
	if st.rep == plus {
		least = 1
	}
	n := 0
	for n < most && st.set.has(m.s[pos+n]) {
		n++
	}
	if !m.tick(n / 4) {
		return -1
	}
	if i+1 == len(m.p.steps) { // nothing after it can fail
		if n < least {
			return -1
		}
		return pos + n
	}
	for ; n >= least; n-- {
		if end := m.run(i+1, pos+n); end >= 0 || m.failed != nil {
			return end
		}
	}
	return -1
}

// again matches the text of a capture once more. A position has no text.
func (m *matcher) again(c capture, pos int) int {
	if c.to == capPosition {
		m.failed = errors.New("invalid capture index")
		return -1
	}
	n := c.to - c.from
	if !m.tick(n/16) || len(m.s)-pos < n || m.s[c.from:c.to] != m.s[pos:pos+n] {
		return -1
	}
	return pos + n
}

func (m *matcher) balance(st *step, pos int) int {
	if pos >= len(m.s) || m.s[pos] != st.x {
		return -1
	}
	level := 1
	for i := pos + 1; i < len(m.s); i++ {
		if !m.tick(1) {
			return -1
		}
		switch c := m.s[i]; {
		case c == st.y:
			if level--; level == 0 {
				return i + 1
			}
		case c == st.x:
			level++
		}
	}
	return -1
}
