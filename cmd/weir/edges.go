package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"weir/pkg/objectid"
	"weir/pkg/wire"
	"weir/services/host/hostd"
)

type edgesCommand struct {
	Object string `arg:"" help:"The publisher, as Class/name."`
	JSON   bool   `name:"json" help:"Print JSON."`
	running
}

// Run lists the edges of a publisher, and those that were dropped.
func (c *edgesCommand) Run(p *process) error {
	id, err := objectid.Parse(c.Object)
	if err != nil {
		return exit{2, fmt.Errorf("weir edges: %w", err)}
	}
	results, err := c.call(p.ctx, id, hostd.MethodEdges, "[]")
	if err != nil {
		return err
	}
	if c.JSON {
		fmt.Fprintln(p.stdout, string(results[0]))
		return nil
	}
	var e wire.EdgesReply
	if err := json.Unmarshal(results[0], &e); err != nil {
		return exit{1, err}
	}
	w := tabwriter.NewWriter(p.stdout, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "TOPIC\tFOLLOWER\tTRANSPORT\tFILTER\tCONFIRMED\tLAG\tATTEMPTS\tNEXT TRY\tLAST ERROR")
	for _, r := range e.Edges {
		filter, next := string(r.Filter), ""
		if filter == "" {
			filter = "-"
		}
		if r.Attempts > 0 {
			next = time.UnixMilli(r.NextTry).Format(time.RFC3339)
		}
		if r.Transport == "connection" {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t-\t-\t-\t\t\n", r.Topic, r.Follower, r.Transport, filter)
			continue
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d of %d\t%d\t%d\t%s\t%s\n", r.Topic, r.Follower, r.Transport, filter, r.Confirmed, e.Head, r.Lag, r.Attempts, next, firstLine(r.Error))
	}
	if len(e.Dropped) > 0 {
		fmt.Fprintln(w, "\nDROPPED\tFOLLOWER\tEVENT\tATTEMPTS\tAT\tERROR")
		for _, d := range e.Dropped {
			fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%s\t%s\n", d.Topic, d.Follower, d.Seq, d.Attempts, time.UnixMilli(d.At).Format(time.RFC3339), firstLine(d.Error))
		}
	}
	return w.Flush()
}

// firstLine is what a table has room for, without what moves a terminal's cursor.
func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, line)
}
