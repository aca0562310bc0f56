package fetch

import (
	"html/template"
	"net/http"
	"regexp"
	"strconv"
	"strings"
)

// page shows a developer what failed, and where.
var page = template.Must(template.New("failure").Parse(`<!doctype html><html lang="en"><meta charset="utf-8"><title>{{.Status}}: {{.Text}}</title>
<style>body{font:16px/1.5 system-ui,sans-serif;max-width:52rem;margin:3rem auto;padding:0 1rem;color-scheme:light dark}
h1{font-size:1.3rem;overflow-wrap:anywhere}pre{overflow:auto;padding:1rem;border:1px solid #8886;border-radius:.4rem}b{color:#c33}small{opacity:.7}</style>
<h1>{{.Text}}</h1>{{if .Lines}}<p>{{.File}}, line {{.Line}}</p><pre>{{range .Lines}}{{if .Here}}<b>{{.Number}}  {{.Code}}</b>{{else}}{{.Number}}  {{.Code}}{{end}}
{{end}}</pre>{{end}}{{if .Trace}}<p>How it came there:</p><pre>{{.Trace}}</pre>{{end}}
<p><small>Status {{.Status}}, correlation id {{.ID}}. Only weir dev shows this page; a service sends the id alone.</small></p></html>
`))

// sourceLine is one line of the app's source.
type sourceLine struct {
	Number int
	Code   string
	Here   bool
}

var where = regexp.MustCompile(`([^\s:"]+\.lua):(\d+):`)

// explain answers with the error, the source line that it names, and the chain of calls.
func (h *Handler) explain(w http.ResponseWriter, status int, id string, err error, trace string) {
	data := struct {
		Status         int
		Text, File, ID string
		Trace          string
		Line           int
		Lines          []sourceLine
	}{Status: status, Text: err.Error(), ID: id, Trace: trace}
	if m := where.FindStringSubmatch(data.Text); m != nil {
		data.File = m[1]
		data.Line, _ = strconv.Atoi(m[2])
		if source, ok := h.c.App.File(m[1]); ok {
			lines := strings.Split(string(source), "\n")
			for n := max(1, data.Line-3); n <= min(len(lines), data.Line+3); n++ {
				data.Lines = append(data.Lines, sourceLine{n, lines[n-1], n == data.Line})
			}
		}
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_ = page.Execute(w, data)
}
