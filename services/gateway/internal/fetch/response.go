package fetch

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"
	"golang.org/x/net/http/httpguts"

	"weir/pkg/value"
)

// response is what a handler returned.
type response struct {
	status int
	header http.Header
	body   []byte
}

// readResponse reads { status, headers, body }. A handler that returns nothing found nothing.
func readResponse(v lua.LValue) (*response, error) {
	if v == lua.LNil {
		return &response{status: http.StatusNotFound, header: http.Header{"Content-Type": {"text/plain; charset=utf-8"}}, body: []byte("404 not found\n")}, nil
	}
	t, ok := v.(*lua.LTable)
	if !ok {
		return nil, fmt.Errorf("bad value: the fetch handler returns { status = …, headers = …, body = … }, not a %s", v.Type())
	}
	a := &response{status: http.StatusOK, header: http.Header{}}
	for _, key := range []string{"status_code", "status"} {
		switch n := t.RawGetString(key).(type) {
		case *lua.LNilType:
		case lua.LNumber:
			a.status = int(n)
			if lua.LNumber(a.status) != n || a.status < 200 || a.status > 599 {
				return nil, fmt.Errorf("bad value: the response's %s must be from 200 to 599, not %v", key, n)
			}
		default:
			return nil, fmt.Errorf("bad value: the response's %s must be a number, not a %s", key, n.Type())
		}
	}
	if err := a.readHeaders(t.RawGetString("headers")); err != nil {
		return nil, err
	}
	return a, a.readBody(t.RawGetString("body"))
}

func (a *response) readHeaders(v lua.LValue) error {
	if v == lua.LNil {
		return nil
	}
	t, ok := v.(*lua.LTable)
	if !ok {
		return fmt.Errorf("bad value: the response's headers must be a table, not a %s", v.Type())
	}
	var err error
	add := func(name string, v lua.LValue) {
		text := v.String()
		switch {
		case err != nil:
		case v.Type() != lua.LTString && v.Type() != lua.LTNumber:
			err = fmt.Errorf("bad value: the response's header %q must be a string or an array of them, not a %s", name, v.Type())
		case !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(text):
			err = fmt.Errorf("bad value: the response's header %q has characters that no header may have", name)
		default:
			a.header.Add(name, text)
		}
	}
	t.ForEach(func(k, v lua.LValue) {
		if list, ok := v.(*lua.LTable); ok {
			for i := 1; i <= list.Len(); i++ {
				add(k.String(), list.RawGetInt(i))
			}
			return
		}
		add(k.String(), v)
	})
	return err
}

func (a *response) readBody(v lua.LValue) error {
	kind := "text/plain; charset=utf-8"
	switch v := v.(type) {
	case *lua.LNilType:
		return nil
	case lua.LString:
		a.body = []byte(v)
	case lua.LNumber, lua.LBool:
		a.body = []byte(v.String())
	case *lua.LTable:
		data, err := value.Encode(v, "body", maxAnswer)
		if err != nil {
			return err
		}
		a.body, kind = data, "application/json"
	default:
		return fmt.Errorf("bad value: the response's body must be a string or a table, not a %s", v.Type())
	}
	if a.header.Get("Content-Type") == "" {
		a.header.Set("Content-Type", kind)
	}
	return nil
}

func (a *response) write(w http.ResponseWriter, r *http.Request) {
	closes := w.Header().Get("Connection") != "" // the gateway does, whatever the app says
	for name, values := range a.header {
		if !strings.EqualFold(name, "Content-Length") && !strings.EqualFold(name, "Transfer-Encoding") && !(closes && name == "Connection") {
			w.Header()[name] = values
		}
	}
	if a.status != http.StatusNoContent && a.status != http.StatusNotModified {
		w.Header().Set("Content-Length", strconv.Itoa(len(a.body)))
	}
	w.WriteHeader(a.status)
	if r.Method != http.MethodHead && len(a.body) > 0 {
		_, _ = w.Write(a.body)
	}
}
