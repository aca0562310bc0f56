package luavm

import (
	"errors"
	"strings"
)

// A pattern is compiled to a list of steps before it is matched, so a malformed one is refused before any matching.

type stepKind uint8

const (
	stepOne      stepKind = iota // one byte of a set, repeated as rep says
	stepOpen                     // start capture n
	stepClose                    // end capture n
	stepPosition                 // capture n is the position
	stepBack                     // the text of capture n again
	stepBalance                  // %bxy
	stepFrontier                 // %f[set]
	stepEnd                      // $
)

type repeat uint8

const (
	once   repeat = iota
	maybe         // ?
	greedy        // *
	plus          // +
	lazy          // -
)

// byteSet has a bit for every byte.
type byteSet [4]uint64

func (s *byteSet) has(c byte) bool { return s[c>>6]&(1<<(c&63)) != 0 }
func (s *byteSet) add(c byte)      { s[c>>6] |= 1 << (c & 63) }

func (s *byteSet) addAll(o byteSet) {
	for i := range s {
		s[i] |= o[i]
	}
}

func (s byteSet) inverse() byteSet {
	for i := range s {
		s[i] = ^s[i]
	}
	return s
}

type step struct {
	kind stepKind
	rep  repeat
	n    int // capture
	x, y byte
	set  byteSet
}

type pattern struct {
	steps    []step
	anchored bool
	captures int
}

const maxCaptures = 32

type patternParser struct {
	src  string
	at   int
	out  pattern
	open []int // captures that have begun
	done [maxCaptures]bool
}

// compilePattern parses a Lua pattern. A leading ^ is an anchor where anchors is true; gmatch of Lua 5.1 knows none.
func compilePattern(src string, anchors bool) (*pattern, error) {
	p := &patternParser{src: src}
	if anchors && strings.HasPrefix(src, "^") {
		p.out.anchored = true
		p.at = 1
	}
	for p.at < len(src) {
		if err := p.next(); err != nil {
			return nil, err
		}
	}
	if len(p.open) > 0 {
		return nil, errors.New("unfinished capture")
	}
	return &p.out, nil
}

func (p *patternParser) add(s step) { p.out.steps = append(p.out.steps, s) }

func (p *patternParser) next() error {
	c := p.src[p.at]
	rest := p.src[p.at+1:]
	switch c {
	case '(':
		p.at++
		return p.capture(rest)
	case ')':
		p.at++
		if len(p.open) == 0 {
			return errors.New("invalid pattern capture")
		}
		n := p.open[len(p.open)-1]
		p.open = p.open[:len(p.open)-1]
		p.done[n] = true
		p.add(step{kind: stepClose, n: n})
		return nil
	case '$':
		if rest == "" {
			p.at++
			p.add(step{kind: stepEnd})
			return nil
		}
	case '%':
		if rest == "" {
			return errors.New("malformed pattern (ends with '%')")
		}
		switch e := rest[0]; {
		case e == 'b':
			if len(rest) < 3 {
				return errors.New("unbalanced pattern")
			}
			p.at += 4
			p.add(step{kind: stepBalance, x: rest[1], y: rest[2]})
			return nil
		case e == 'f':
			p.at += 2
			if p.at >= len(p.src) || p.src[p.at] != '[' {
				return errors.New("missing '[' after '%f' in pattern")
			}
			set, err := p.bracket()
			p.add(step{kind: stepFrontier, set: set})
			return err
		case e >= '0' && e <= '9':
			n := int(e - '1')
			if e == '0' || n >= p.out.captures || !p.done[n] {
				return errors.New("invalid capture index")
			}
			p.at += 2
			p.add(step{kind: stepBack, n: n})
			return nil
		}
	}
	return p.one()
}

func (p *patternParser) capture(rest string) error {
	n := p.out.captures
	if n >= maxCaptures {
		return errors.New("too many captures")
	}
	p.out.captures++
	if strings.HasPrefix(rest, ")") {
		p.at++
		p.done[n] = true
		p.add(step{kind: stepPosition, n: n})
		return nil
	}
	p.open = append(p.open, n)
	p.add(step{kind: stepOpen, n: n})
	return nil
}

// one parses a single-byte item and its suffix.
func (p *patternParser) one() error {
	s := step{kind: stepOne}
	switch c := p.src[p.at]; c {
	case '.':
		s.set = byteSet{}.inverse()
		p.at++
	case '[':
		set, err := p.bracket()
		if err != nil {
			return err
		}
		s.set = set
	case '%':
		s.set = class(p.src[p.at+1])
		p.at += 2
	default:
		s.set.add(c)
		p.at++
	}
	if p.at < len(p.src) {
		switch p.src[p.at] {
		case '?':
			s.rep = maybe
		case '*':
			s.rep = greedy
		case '+':
			s.rep = plus
		case '-':
			s.rep = lazy
		}
		if s.rep != once {
			p.at++
		}
	}
	p.add(s)
	return nil
}

// bracket parses [set]. A ] that comes first, and whatever follows a %, does not end it.
func (p *patternParser) bracket() (byteSet, error) {
	var set byteSet
	missing := errors.New("malformed pattern (missing ']')")
	i := p.at + 1
	negate := i < len(p.src) && p.src[i] == '^'
	if negate {
		i++
	}
	from, end := i, -1
	for j := i; j < len(p.src); j++ {
		if p.src[j] == ']' && j > from {
			end = j
			break
		}
		if p.src[j] == '%' {
			j++
		}
	}
	if end < 0 {
		return set, missing
	}
	for i < end {
		c := p.src[i]
		switch {
		case c == '%':
			set.addAll(class(p.src[i+1]))
			i += 2
		case i+2 < end && p.src[i+1] == '-':
			for x := int(c); x <= int(p.src[i+2]); x++ {
				set.add(byte(x))
			}
			i += 3
		default:
			set.add(c)
			i++
		}
	}
	p.at = end + 1
	if negate {
		set = set.inverse()
	}
	return set, nil
}

// class is the set of %c; what is no class letter stands for itself.
func class(c byte) byteSet {
	if s, ok := classes[c|0x20]; ok && (c|0x20) >= 'a' && (c|0x20) <= 'z' {
		if c >= 'A' && c <= 'Z' {
			return s.inverse()
		}
		return s
	}
	var s byteSet
	s.add(c)
	return s
}

var classes = func() map[byte]byteSet {
	in := func(c, from, to byte) bool { return c >= from && c <= to }
	tests := map[byte]func(byte) bool{
		'a': func(c byte) bool { return in(c|0x20, 'a', 'z') },
		'c': func(c byte) bool { return c < 32 || c == 127 },
		'd': func(c byte) bool { return in(c, '0', '9') },
		'l': func(c byte) bool { return in(c, 'a', 'z') },
		'p': func(c byte) bool { return in(c, 33, 126) && !in(c|0x20, 'a', 'z') && !in(c, '0', '9') },
		's': func(c byte) bool { return c == ' ' || in(c, 9, 13) },
		'u': func(c byte) bool { return in(c, 'A', 'Z') },
		'w': func(c byte) bool { return in(c|0x20, 'a', 'z') || in(c, '0', '9') },
		'x': func(c byte) bool { return in(c, '0', '9') || in(c|0x20, 'a', 'f') },
		'z': func(c byte) bool { return c == 0 },
	}
	m := map[byte]byteSet{}
	for k, test := range tests {
		var s byteSet
		for c := range 256 {
			if test(byte(c)) {
				s.add(byte(c))
			}
		}
		m[k] = s
	}
	return m
}()
