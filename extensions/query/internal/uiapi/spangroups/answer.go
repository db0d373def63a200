package spangroups

import (
	"math"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/uiapi/route"
	"github.com/tracing-backend/tracing/internal/traceql"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// answer is the data of GET /api/ui/v1/groups. Counts cover the examined share of spans.
type answer struct {
	Of     string   `json:"of"` // what is counted: spans or traces
	By     []string `json:"by"` // fields, as in searches
	Spans  uint64   `json:"spans"`
	Errors uint64   `json:"errors"`
	route.SampleShare
	Distinct int     `json:"distinct"` // groups, including omitted ones
	Other    uint64  `json:"other"`    // spans of groups that were not counted individually
	All      numbers `json:"all"`
	Groups   columns `json:"groups"`
}

// numbers describe durations, in nanoseconds.
type numbers struct {
	P50  uint64 `json:"p50"`
	P95  uint64 `json:"p95"`
	P99  uint64 `json:"p99"`
	Time uint64 `json:"time"` // sum
}

// columns are the groups in the requested order.
type columns struct {
	Values [][]*string `json:"values"` // a list for each field; null if the spans have no value
	Where  []string    `json:"where"`  // the conditions on spans of the group, as within braces
	Count  []uint64    `json:"count"`
	Errors []uint64    `json:"errors"`
	P50    []uint64    `json:"p50"`
	P95    []uint64    `json:"p95"`
	P99    []uint64    `json:"p99"`
	Time   []uint64    `json:"time"`
}

func answerOf(agg *core.Aggregation, a *tracestore.Aggregate) *answer {
	by := agg.Spec.Groups.By
	out := &answer{Of: ofSpans, Spans: a.Spans, Errors: a.Errors}
	if agg.Traces {
		out.Of = ofTraces
	}
	for _, f := range by {
		out.By = append(out.By, traceql.FormatField(f))
	}
	g := a.Groups
	if g == nil { // there is no span in the window
		g = &tracestore.Groups{Share: 1}
	}
	out.SampleShare = route.ShareOf(a, g.Share)
	out.Distinct, out.Other, out.All = g.Distinct, g.Other, numbersOf(&g.All.Durations)
	out.Groups = columnsOf(by, g.Groups)
	return out
}

func numbersOf(h *tracestore.Histogram) numbers {
	return numbers{quantile(h, 0.5), quantile(h, 0.95), quantile(h, 0.99), min(h.Sum, math.MaxInt64)}
}

func quantile(h *tracestore.Histogram, q float64) uint64 {
	return uint64(min(h.Quantile(q), math.MaxInt64))
}

func columnsOf(by []tracestore.Field, groups []tracestore.Group) columns {
	n := len(groups)
	out := columns{make([][]*string, len(by)), make([]string, n), make([]uint64, n), make([]uint64, n), make([]uint64, n),
		make([]uint64, n), make([]uint64, n), make([]uint64, n)}
	for i := range by {
		out.Values[i] = make([]*string, n)
	}
	for i := range groups {
		g := &groups[i]
		for at := range by {
			if g.Values[at].Present {
				out.Values[at][i] = &g.Values[at].Text
			}
		}
		d := numbersOf(&g.Durations)
		out.Where[i], out.Count[i], out.Errors[i] = whereOf(by, g), g.Durations.Count(), g.Errors
		out.P50[i], out.P95[i], out.P99[i], out.Time[i] = d.P50, d.P95, d.P99, d.Time
	}
	return out
}

// whereOf returns the conditions for the spans of a group, as within braces.
func whereOf(by []tracestore.Field, g *tracestore.Group) string {
	all := tracestore.And{}
	for i, f := range by {
		all = append(all, condition(f, g.Values[i]))
	}
	text := traceql.Format(storequery.Select{Where: all})
	return strings.TrimSuffix(strings.TrimPrefix(text, "{ "), " }")
}

// condition returns the condition that a field has a value, or none.
func condition(f tracestore.Field, v tracestore.GroupValue) tracestore.Expr {
	switch {
	case !v.Present:
		return tracestore.Not{Expr: tracestore.Cond{Field: f, Op: tracestore.Exists}}
	case len(v.Text) > storequery.MaxFacetText-utf8.UTFMax && utf8.ValidString(v.Text): // it may have been cut
		pattern := regexp.MustCompile("^(?s:" + regexp.QuoteMeta(v.Text) + ".*)$")
		return tracestore.Cond{Field: f, Op: tracestore.Like, Value: tracestore.Pattern(pattern)}
	}
	return tracestore.Cond{Field: f, Op: tracestore.Eq, Value: tracestore.Text(v.Text)}
}
