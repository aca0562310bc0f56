package value

import (
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"
)

// Error says which value cannot cross and why. Its text is "bad value: ", the
// path, what is wrong and what to do. Trying again does not help.
type Error struct {
	// Path leads to the value, as in `value.items[3]`. It is empty when the
	// problem names its subject itself.
	Path string
	// Problem is what is wrong and what to do about it.
	Problem string

	// whole marks a problem of the root, such as its size, found further in.
	whole bool
}

// Error gives the whole message, starting with its code.
func (e *Error) Error() string {
	if e.Path == "" {
		return "bad value: " + e.Problem
	}
	return "bad value: " + e.Path + ": " + e.Problem
}

func problem(format string, args ...any) *Error {
	return &Error{Problem: fmt.Sprintf(format, args...)}
}

// of puts the root before the path.
func (e *Error) of(root string) *Error {
	e.Path = root + e.Path
	return e
}

// in puts a step before the path, on the way out of a nested value.
func (e *Error) in(step string) *Error {
	if !e.whole {
		e.Path = step + e.Path
	}
	return e
}

// inList puts position i of a list of arguments or results before the path; a
// problem of the whole list names the list.
func (e *Error) inList(what string, i int) *Error {
	if e.whole {
		e.Path = what + "s"
	} else {
		e.Path = what + " " + strconv.Itoa(i) + e.Path
	}
	return e
}

// fieldStep is the step to a field.
func fieldStep(name string) string {
	if identifier(name) {
		return "." + name
	}
	return "[" + quote(name) + "]"
}

// indexStep is the step to the element at position i, counted from 1.
func indexStep(i int) string { return "[" + strconv.Itoa(i) + "]" }

// maxShown is how many bytes of the user's text an error shows.
const maxShown = 40

func identifier(s string) bool {
	if s == "" || len(s) > maxShown {
		return false
	}
	for i := range len(s) {
		c := s[i]
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return true
}

// quote shows text in an error, shortened and escaped.
func quote(s string) string {
	if len(s) <= maxShown {
		return strconv.Quote(s)
	}
	cut := maxShown
	for cut > maxShown-utf8.UTFMax && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return strconv.Quote(s[:cut]) + "…"
}

// integral says whether x is an integer within ±2^53.
func integral(x float64) bool {
	return x == math.Trunc(x) && x >= -MaxInteger && x <= MaxInteger
}

func tooDeep() *Error {
	return problem("nested deeper than %d levels", MaxDepth)
}

// tooLarge is a problem of the whole value, wherever it was noticed.
func tooLarge(limit int) *Error {
	return &Error{whole: true, Problem: fmt.Sprintf(
		"larger than %d bytes as JSON, the limit here; split it, or keep it in SQL and pass its key", limit)}
}
