package traces

import (
	"bufio"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

const columnGap = 2

// column is a column of a table.
type column struct {
	head   string
	right  bool // aligned to the right
	shrink int  // minimum width on narrow screens; 0 means that it is never cut
}

// writeTable prints aligned rows of printable text, without trailing spaces. On a terminal, columns
// with shrink are cut to fit.
func writeTable(out io.Writer, s screen, columns []column, rows [][]string) error {
	widths := make([]int, len(columns))
	total := columnGap * (len(columns) - 1)
	for i, c := range columns {
		widths[i] = width(c.head)
		for _, row := range rows {
			widths[i] = max(widths[i], width(row[i]))
		}
		total += widths[i]
	}
	for i, c := range columns {
		if s.terminal && c.shrink > 0 && total > s.width {
			narrow := max(min(widths[i], c.shrink), widths[i]-(total-s.width))
			total -= widths[i] - narrow
			widths[i] = narrow
		}
	}
	w := bufio.NewWriter(out)
	line := func(row []string, color string) {
		parts := make([]string, len(row))
		for i, text := range row {
			if columns[i].right {
				parts[i] = alignRight(text, widths[i])
			} else {
				parts[i] = fit(text, widths[i])
			}
		}
		text := strings.TrimRight(strings.Join(parts, strings.Repeat(" ", columnGap)), " ")
		w.WriteString(s.paint(color, text) + "\n") //nolint:errcheck // Flush returns it
	}
	heads := make([]string, len(columns))
	for i, c := range columns {
		heads[i] = c.head
	}
	line(heads, dim)
	for _, row := range rows {
		line(row, "")
	}
	return w.Flush()
}

// writeSummaries prints a table of traces, the latest first. It has a column ORPHANS for spans with
// missing parents if there are any.
func writeSummaries(out io.Writer, s screen, zone *time.Location, all []summary) error {
	slices.SortStableFunc(all, func(a, b summary) int { return int(min(max(b.start-a.start, -1), 1)) })
	columns := []column{{head: "START (" + zoneName(zone, all) + ")"}, {head: "DURATION", right: true}, {head: "SPANS", right: true},
		{head: "ERRORS", right: true}, {head: "ORPHANS", right: true}, {head: "ROOT", shrink: minLabel}, {head: "TRACE"}}
	rows := make([][]string, len(all))
	for i, sum := range all {
		start := "unknown"
		if sum.start > 0 {
			start = time.UnixMicro(sum.start).In(zone).Format("2006-01-02 15:04:05.000")
		}
		rows[i] = []string{start, short(sum.duration), strconv.Itoa(sum.spans), strconv.Itoa(sum.errors), strconv.Itoa(sum.orphans),
			sum.root,
			clean(sum.id)}
	}
	if !slices.ContainsFunc(all, func(sum summary) bool { return sum.orphans > 0 }) {
		columns, rows = withoutColumn(columns, rows, "ORPHANS")
	}
	return writeTable(out, s, columns, rows)
}

// withoutColumn removes a column.
func withoutColumn(columns []column, rows [][]string, head string) ([]column, [][]string) {
	at := slices.IndexFunc(columns, func(c column) bool { return c.head == head })
	for i := range rows {
		rows[i] = slices.Delete(rows[i], at, at+1)
	}
	return slices.Delete(columns, at, at+1), rows
}

// zoneName returns the name of the time zone at the time of the first trace; it depends on daylight
// saving time.
func zoneName(zone *time.Location, all []summary) string {
	if len(all) == 0 {
		return zone.String()
	}
	return time.UnixMicro(all[0].start).In(zone).Format("MST")
}
