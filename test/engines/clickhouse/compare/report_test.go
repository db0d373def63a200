package compare

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// String describes the tables.
func (r *report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d parts; bytes per span:", r.name, r.parts)
	for _, table := range slices.Sorted(maps.Keys(r.tables)) {
		fmt.Fprintf(&b, " %s %.2f", table, float64(r.tables[table])/float64(r.spans))
	}
	return b.String()
}

// line is a row of the table: a figure of each schema.
type line struct {
	name  string
	unit  string
	value func(*report) float64 // 0: there is none
}

func lines() []line {
	perMillion := func(t func(*report) time.Duration) func(*report) float64 {
		return func(r *report) float64 { return t(r).Seconds() * 1e6 / float64(r.spans) }
	}
	all := []line{
		{"inserted", "spans/s", func(r *report) float64 { return float64(r.spans) / r.insert.Seconds() }},
		{"CPU time of the server, inserts", "s/M spans", perMillion(func(r *report) time.Duration { return r.serverCPU })},
		{"CPU time of the server, with merges", "s/M spans", perMillion(func(r *report) time.Duration { return r.settledCPU })},
		{"CPU time of the client", "s/M spans", perMillion(func(r *report) time.Duration { return r.clientCPU })},
		{"peak memory of the server", "MiB", func(r *report) float64 { return float64(r.peakMemory >> 20) }},
		{"on disk, merges ended", "B/span", func(r *report) float64 { return float64(r.bytes()) / float64(r.spans) }},
		{"on disk, one part", "B/span", func(r *report) float64 { return float64(r.optimized) / float64(r.spans) }},
	}
	for _, q := range allQueries {
		all = append(all, line{q, "ms", func(r *report) float64 { return float64(r.medians[q]) / 1e6 }})
	}
	return append(all, line{"newest 20 of a service: right", "%", func(r *report) float64 { return 100 * r.right }})
}

// printReports prints a column for each schema, and the ratios of the first to the others.
func printReports(w io.Writer, reports []*report) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	defer t.Flush() //nolint:errcheck // standard output
	fmt.Fprint(t, "\tunit")
	for i, r := range reports {
		if fmt.Fprint(t, "\t", r.name); i > 0 {
			fmt.Fprint(t, "\tratio")
		}
	}
	fmt.Fprintln(t, "\t")
	for _, l := range lines() {
		fmt.Fprint(t, l.name, "\t", l.unit)
		first := 0.0
		for i, r := range reports {
			v := l.value(r)
			if i == 0 {
				first = v
			}
			fmt.Fprint(t, "\t", figure(v))
			if i > 0 && v > 0 && first > 0 {
				fmt.Fprintf(t, "\t%.2f", first/v)
			} else if i > 0 {
				fmt.Fprint(t, "\t-")
			}
		}
		fmt.Fprintln(t, "\t")
	}
}

func figure(v float64) string {
	switch {
	case v == 0:
		return "-"
	case v >= 1000:
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.1f", v)
}
