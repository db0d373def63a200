package tempo

import (
	"errors"
	"fmt"
	"math"
	"net/url"
	"slices"
	"time"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/httpapi"
	"github.com/tracing-backend/tracing/internal/traceql"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

const (
	defaultTraces = 20
	defaultSpans  = 3 // per trace
	// maxSpans is the maximum number of spans that are listed per trace.
	maxSpans = 100
)

// searchQuery holds the parameters of GET /tempo/api/search.
type searchQuery struct {
	set    storequery.SpanSet
	fields []tracestore.Field // shown of each span
	window core.Window
	limit  int // traces
	spans  int // per trace
}

// parseSearch parses the parameters of a search. The default time range is the same as in the other
// APIs. The errors are for the client.
func parseSearch(l traceql.Language, v url.Values, now time.Time, maxTraces int) (q searchQuery, err error) {
	if q.window, err = windowParams(v); err != nil {
		return q, err
	}
	if q.window.To.IsZero() {
		q.window.To = now
	}
	if q.window.From.IsZero() {
		q.window.From = q.window.To.Add(-core.DefaultSearchLookback)
	}
	if err := checkWindow(q.window); err != nil {
		return q, err
	}
	if q.limit, err = countParam(v, "limit", min(defaultTraces, maxTraces), 1, math.MaxInt); err != nil {
		return q, err
	}
	if q.limit > maxTraces {
		return q, invalid("limit", fmt.Errorf("%d exceeds the maximum of %d traces; raise max_limit or narrow the search", q.limit, maxTraces))
	}
	if q.spans, err = countParam(v, "spss", defaultSpans, 0, maxSpans); err != nil {
		return q, err
	}
	if q.spans == 0 { // no limit
		q.spans = maxSpans
	}
	return q, q.parseConditions(l, v)
}

// parseConditions parses q or tags, and the durations.
func (q *searchQuery) parseConditions(l traceql.Language, v url.Values) error {
	text, tags := v.Get("q"), v.Get("tags")
	switch {
	case text != "" && tags != "":
		return errors.New("can't specify tags and q in the same query")
	case text != "":
		parsed, err := l.Parse(text)
		if err != nil {
			if _, wrong := traceql.ParseMetrics(text); wrong == nil {
				return errors.New("invalid TraceQL query: metrics query; send it to api/metrics/query_range, or leave out the function")
			}
			return explainSyntax(err)
		}
		q.set, q.fields = parsed.Set, shownFields(&parsed)
	default:
		where, err := tagsCondition(tags)
		if err != nil {
			return invalid("tags", err)
		}
		q.set = storequery.Select{Where: l.WithNames(where)}
	}
	long, err := traceDurations(v)
	if len(long) > 0 {
		q.set = withCondition(q.set, long)
	}
	return err
}

// explainSyntax returns an error that shows the position of a syntax error.
func explainSyntax(err error) error {
	var mistake *traceql.Error
	if errors.As(err, &mistake) {
		return fmt.Errorf("invalid TraceQL query: %s", mistake.Detail())
	}
	return err
}

// traceDurations parses the bounds on the duration of the trace.
func traceDurations(v url.Values) (all tracestore.And, err error) {
	minimum, err := httpapi.DurationParam(v, "minDuration")
	if err != nil {
		return nil, err
	}
	maximum, err := httpapi.DurationParam(v, "maxDuration")
	if err != nil {
		return nil, err
	}
	if minimum != 0 {
		all = append(all, core.WhereDuration(tracestore.TraceDuration, tracestore.Ge, minimum))
	}
	if maximum != 0 {
		if maximum < minimum {
			return nil, invalid("maxDuration", errors.New("must be greater than minDuration"))
		}
		all = append(all, core.WhereDuration(tracestore.TraceDuration, tracestore.Le, maximum))
	}
	return all, nil
}

// withCondition returns a set with the spans of another set whose trace meets a condition.
func withCondition(set storequery.SpanSet, where tracestore.Expr) storequery.SpanSet {
	switch s := set.(type) {
	case storequery.Select:
		if s.Where == nil {
			return storequery.Select{Where: where}
		}
		return storequery.Select{Where: tracestore.And{s.Where, where}}
	case storequery.Pipeline:
		return storequery.Pipeline{Set: s.Set, Stages: append(slices.Clip(s.Stages), storequery.Refine{Set: storequery.Select{Where: where}})}
	}
	return storequery.Pipeline{Set: set, Stages: []storequery.Stage{storequery.Refine{Set: storequery.Select{Where: where}}}}
}

// tagsCondition parses tags in logfmt, `key=value key2="a value"`. All must hold on one span.
func tagsCondition(text string) (tracestore.Expr, error) {
	tags, err := parseLogfmt(text)
	if err != nil {
		return nil, err
	}
	var all tracestore.And
	for _, t := range tags {
		all = append(all, whereTag(t))
	}
	return all, nil
}

// whereTag returns the condition for a tag. Some keys are properties of the span or its trace.
func whereTag(t logfmtTag) tracestore.Expr {
	if place, ok := placeOfTag(t.key); ok {
		return condition(tracestore.Field{Place: place}, t)
	}
	switch {
	case !t.hasValue:
		return condition(tracestore.Field{Place: tracestore.AnyAttribute, Key: t.key}, t)
	case t.key == "status.code":
		return storequery.TagCondition("span.status", t.value)
	}
	return storequery.TagCondition(t.key, t.value)
}

func condition(f tracestore.Field, t logfmtTag) tracestore.Expr {
	if !t.hasValue {
		return tracestore.Cond{Field: f, Op: tracestore.Exists}
	}
	return tracestore.Cond{Field: f, Op: tracestore.Eq, Value: tracestore.Text(t.value)}
}

// placeOfTag returns the property of the span or its trace that a key stands for.
func placeOfTag(key string) (p tracestore.Place, ok bool) {
	for _, p := range tracestore.Places() {
		if slices.Contains(p.Keys, key) {
			return p.Place, true
		}
	}
	return p, false
}
