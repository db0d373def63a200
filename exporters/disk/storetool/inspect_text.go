package storetool

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// columnName returns the displayed name of a column: the part of the span, and for attributes the
// key and the type of the value.
func columnName(c *rows.Column) string {
	places := [...]string{
		rows.Attribute: "attribute", rows.Extra: "attributes without a column", rows.Name: "names in rows",
		rows.TraceState: "trace state", rows.StatusMessage: "status message", rows.Flags: "flags",
		rows.DroppedAttributes: "dropped attributes", rows.DroppedEvents: "dropped events", rows.DroppedLinks: "dropped links",
		rows.EventTime: "event time", rows.EventName: "event name", rows.EventDropped: "event dropped attributes",
		rows.EventAttribute: "event attribute", rows.Events: "encoded events", rows.Links: "encoded links",
	}
	kinds := [...]string{
		otlpdata.ValueEmpty: "empty", otlpdata.ValueString: "string", otlpdata.ValueBool: "bool", otlpdata.ValueInt: "int",
		otlpdata.ValueDouble: "double", otlpdata.ValueBytes: "bytes", otlpdata.ValueArray: "array", otlpdata.ValueMap: "map",
	}
	if int(c.Place) >= len(places) || int(c.Kind) >= len(kinds) {
		return fmt.Sprintf("column at place %d", c.Place)
	}
	if c.Place != rows.Attribute && c.Place != rows.EventAttribute {
		return places[c.Place]
	}
	return fmt.Sprintf("%s %s (%s)", places[c.Place], printable(c.Key), kinds[c.Kind])
}

// printable returns text, quoted if it is empty or has spaces, quotes or unprintable characters.
// Text from clients must not send control sequences to a terminal.
func printable(text string) string {
	quoted := fmt.Sprintf("%q", text)
	if quoted == `"`+text+`"` && !strings.Contains(text, " ") && text != "" {
		return text
	}
	return quoted
}

const timeFormat = "2006-01-02T15:04:05Z"

func formatTime(t *time.Time) string {
	if t == nil {
		return "-"
	}
	return t.Format(timeFormat)
}

// formatSize returns a number of bytes with a binary unit.
func formatSize(n int64) string {
	unit, units := float64(n), []string{"B", "KiB", "MiB", "GiB", "TiB"}
	for len(units) > 1 && unit >= 1024 {
		unit, units = unit/1024, units[1:]
	}
	if units[0] == "B" {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.1f %s", unit, units[0])
}

// write prints the inspection as text, with the top largest shares, or all if top is 0.
func (in *Inspection) write(out io.Writer, top int) error {
	t := &in.Totals
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "store\t%s, version %d\n", in.Store, in.Version)
	fmt.Fprintf(w, "spans\t%d in %d segments, %d in the log\n", t.Spans, t.Segments, t.SpansInLog)
	fmt.Fprintf(w, "traces\t%d; a trace in several segments counts once in each\n", t.Traces)
	fmt.Fprintf(w, "services\t%d\n", t.Services)
	fmt.Fprintf(w, "start times\t%s to %s\n", formatTime(t.FirstStart), formatTime(t.LastStart))
	fmt.Fprintf(w, "segments\t%s, %.2f bytes per span\n", formatSize(t.Bytes), t.BytesPerSpan)
	logs := in.SpareLogs.Bytes
	for _, l := range in.Logs {
		logs += l.Bytes
	}
	fmt.Fprintf(w, "log\t%s, of which %s are spare files\n", formatSize(logs), formatSize(in.SpareLogs.Bytes))
	fmt.Fprintf(w, "reserve\t%s\n", formatSize(in.Reserve))
	fmt.Fprintf(w, "quarantine\t%d files, %s\n", in.Quarantine.Files.Files, formatSize(in.Quarantine.Bytes))
	if d := in.Deletions; d != (Deletions{}) {
		fmt.Fprintf(w, "deletions\t%d recorded, %d damaged; deleted spans count until their segments are rewritten\n",
			d.Readable, d.Damaged)
	}
	in.writeSegments(w)
	in.writeLogs(w)
	in.writeProblems(w)
	in.writeShares(w, top)
	return w.Flush()
}

func (in *Inspection) writeSegments(w io.Writer) {
	if len(in.Segments) == 0 {
		return
	}
	fmt.Fprintf(w, "\nsegment\tlevel\tspans\ttraces\tblocks\tbytes\tB/span\t"+
		"first start\tlast start\tfirst arrival\tlast arrival\tduplicates\tservices\n")
	for i := range in.Segments {
		s := &in.Segments[i]
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%.2f\t%s\t%s\t%s\t%s\t%d\t%d\n",
			s.Name, s.Level, s.Spans, s.Traces, s.Blocks, s.Bytes, s.BytesPerSpan,
			formatTime(s.FirstStart), formatTime(s.LastStart), formatTime(s.FirstArrival), formatTime(s.LastArrival),
			s.Duplicates, s.Services)
	}
}

func (in *Inspection) writeLogs(w io.Writer) {
	if len(in.Logs) == 0 {
		return
	}
	fmt.Fprintf(w, "\nlog\tbegan\tfiles\tbytes\tspans\tstate\n")
	for _, l := range in.Logs {
		state := "ok"
		if l.Damaged {
			state = "damaged"
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%s\n", l.Epoch, formatTime(&l.Began), l.Files, l.Bytes, l.Spans, state)
	}
}

func (in *Inspection) writeProblems(w io.Writer) {
	for _, name := range in.Replaced {
		fmt.Fprintf(w, "\nreplaced, not yet deleted: %s", name)
	}
	for _, u := range in.Unreadable {
		fmt.Fprintf(w, "\nunreadable: %s, %d bytes: %s", u.Name, u.Bytes, u.Error)
	}
	for _, d := range in.Damage {
		fmt.Fprintf(w, "\ndamaged: %s: %s: %s", d.File, d.Part, d.Error)
	}
	for _, name := range in.Quarantine.Names {
		fmt.Fprintf(w, "\nin quarantine: %s", printable(name))
	}
	for _, name := range slices.Sorted(maps.Keys(in.Quarantine.Notes)) {
		for line := range strings.Lines(in.Quarantine.Notes[name]) {
			fmt.Fprintf(w, "\n  %s", strings.TrimSpace(line))
		}
	}
	if len(in.Replaced)+len(in.Unreadable)+len(in.Damage)+len(in.Quarantine.Names) > 0 {
		fmt.Fprintln(w)
	}
}

func (in *Inspection) writeShares(w io.Writer, top int) {
	if len(in.Shares) == 0 {
		return
	}
	if top <= 0 || top > len(in.Shares) {
		top = len(in.Shares)
	}
	fmt.Fprintf(w, "\nsection\tpart\tbytes\tB/span\n")
	for _, s := range in.Shares[:top] {
		fmt.Fprintf(w, "%s\t%s\t%d\t%.3f\n", s.Section, s.Part, s.Bytes, s.BytesPerSpan)
	}
	rest := Share{}
	for _, s := range in.Shares[top:] {
		rest.Bytes += s.Bytes
	}
	if rest.Bytes > 0 {
		fmt.Fprintf(w, "%d more parts\t\t%d\t%.3f\n", len(in.Shares)-top, rest.Bytes, perSpan(rest.Bytes, in.Totals.Spans))
	}
}
