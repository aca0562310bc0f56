package failure

import (
	"html/template"
	"io"
	"strings"
)

var page = template.Must(template.New("failure").Parse(`<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{{.Status}}: {{.Text}}</title>
<style>body{font:16px/1.5 system-ui,sans-serif;max-width:52rem;margin:3rem auto;padding:0 1rem;color-scheme:light dark}
h1{font-size:1.3rem;overflow-wrap:anywhere}h2{font-size:1rem;margin:1.5rem 0 0}pre{overflow:auto;margin:.4rem 0;padding:1rem;border:1px solid #8886;border-radius:.4rem}
b{color:#c33}small{opacity:.7}</style>
<h1>{{.Text}}</h1>{{if .Hint}}<p>{{.Hint}}.</p>{{end}}
{{range .Places}}<h2>{{if .File}}{{.File}}, line {{.Line}} · {{end}}{{.At}}</h2>{{if .Lines}}<pre>{{range .Lines}}{{if .Here}}<b>{{.Number}}  {{.Code}}</b>{{else}}{{.Number}}  {{.Code}}{{end}}
{{end}}</pre>{{end}}{{end}}
<p><small>Status {{.Status}}, correlation id {{.ID}}. Only weir dev shows this page; a service sends the id alone.</small></p></html>
`))

// Source gives the app's files by name.
type Source interface {
	File(name string) ([]byte, bool)
}

// line is one line of the app's source.
type line struct {
	Number int
	Code   string
	Here   bool
}

type place struct {
	At, File string
	Line     int
	Lines    []line
}

// Page writes the failure as an HTML page, with the lines around each place: for the developer of the app only.
func (f Failure) Page(w io.Writer, app Source, status int, id string) error {
	data := struct {
		Failure
		Status int
		ID     string
		Places []place
	}{Failure: f, Status: status, ID: id}
	for i, fr := range f.Frames {
		around := 1
		if i == 0 {
			around = 3
		}
		p := place{At: fr.At, File: fr.File, Line: fr.Line}
		if source, ok := app.File(fr.File); ok {
			lines := strings.Split(string(source), "\n")
			for n := max(1, fr.Line-around); n <= min(len(lines), fr.Line+around); n++ {
				p.Lines = append(p.Lines, line{n, lines[n-1], n == fr.Line})
			}
		}
		data.Places = append(data.Places, p)
	}
	return page.Execute(w, data)
}
