package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Code is the stable first part of a platform error's text.
type Code string

// The codes. Whether trying again can help is said by Code.Retryable.
const (
	Overloaded      Code = "overloaded"
	Unavailable     Code = "unavailable"
	Timeout         Code = "timeout"
	OutcomeUnknown  Code = "outcome unknown"
	BudgetExceeded  Code = "budget exceeded"
	MemoryLimit     Code = "memory limit"
	DatabaseFull    Code = "database full"
	LogFull         Code = "log full"
	FollowRefused   Code = "follow refused"
	Cycle           Code = "cycle"
	TooDeep         Code = "too deep"
	NoSuchClass     Code = "no such class"
	NoSuchMethod    Code = "no such method"
	NoSuchTopic     Code = "no such topic"
	BadName         Code = "bad name"
	BadValue        Code = "bad value"
	BadSQL          Code = "bad sql"
	MigrationFailed Code = "migration failed"
	Corrupt         Code = "corrupt"
	Internal        Code = "internal"
)

var codes = []Code{Overloaded, Unavailable, Timeout, OutcomeUnknown, BudgetExceeded, MemoryLimit, DatabaseFull, LogFull,
	FollowRefused, Cycle, TooDeep, NoSuchClass, NoSuchMethod, NoSuchTopic, BadName, BadValue, BadSQL, MigrationFailed,
	Corrupt, Internal}

// Retryable says whether the same request may succeed later: "yes", "maybe" (it may have run) or "no".
func (c Code) Retryable() string {
	switch c {
	case Overloaded, Unavailable:
		return "yes"
	case Timeout, OutcomeUnknown:
		return "maybe"
	}
	return "no"
}

// Error is a platform error: its text is "code: message", in Lua and on the wire. An app's own raised string or table
// travels in Raised instead, with the string in Message.
type Error struct {
	Code    Code            `json:"code,omitempty"`
	Message string          `json:"message"`
	Raised  json.RawMessage `json:"raised,omitempty"` // a raised value that is not a string
	Trace   []Frame         `json:"trace,omitempty"`  // where in the app it was raised, innermost first
}

// MaxTrace is how many frames an error carries at most: the innermost ones.
const MaxTrace = 40

// Frame is one line of app code on the way to an error.
type Frame struct {
	At     string `json:"at"` // whose code ran: "Auction/lot-42:bid", "GET /bid"
	File   string `json:"file,omitempty"`
	Line   int    `json:"line,omitempty"`
	Source string `json:"source,omitempty"` // the line itself
}

func (e *Error) Error() string {
	if e.Code == "" {
		if e.Raised != nil {
			return string(e.Raised)
		}
		return e.Message
	}
	return string(e.Code) + ": " + e.Message
}

// Errorf makes a platform error.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// AsError turns any error into a platform error: one that is or wraps an *Error stays what it is, one whose text
// starts with a code takes that code, anything else is internal.
func AsError(err error) *Error {
	if err == nil {
		return nil
	}
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	text := err.Error()
	for _, c := range codes {
		if rest, ok := strings.CutPrefix(text, string(c)+": "); ok {
			return &Error{Code: c, Message: rest}
		}
	}
	return &Error{Code: Internal, Message: text}
}

// Is makes errors.Is(err, wire.Timeout) work by code.
func (e *Error) Is(target error) bool {
	c, ok := target.(Code)
	return ok && e.Code == c
}

func (c Code) Error() string { return string(c) }
