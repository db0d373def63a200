package query

import (
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/tracing-backend/tracing/internal/traceql"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

const (
	tempoTraces = 20 // in an answer that does not say how many
	tempoSpans  = 3  // of each trace, likewise
	// maxTempoSpans is how many spans are listed of each trace at most.
	maxTempoSpans = 100
)

// tempoQuery is what the parameters of GET /tempo/api/search ask for.
type tempoQuery struct {
	set      storequery.SpanSet
	fields   []tracestore.Field // shown of each span
	from, to time.Time
	limit    int // traces
	spans    int // of each
}

// parseTempoSearch reads the parameters. Without an interval it is the one of other searches. The errors are for the client.
func parseTempoSearch(v url.Values, now time.Time, most int) (q tempoQuery, err error) {
	if q.from, q.to, err = tempoWindow(v); err != nil {
		return q, err
	}
	if q.to.IsZero() {
		q.to = now
	}
	if q.from.IsZero() {
		q.from = q.to.Add(-defaultLookback)
	}
	if !q.from.Before(q.to) {
		return q, errInterval(q.from, q.to)
	}
	if q.limit, err = tempoCount(v, "limit", tempoTraces, 1, most); err != nil {
		return q, err
	}
	if q.spans, err = tempoCount(v, "spss", tempoSpans, 0, maxTempoSpans); err != nil {
		return q, err
	}
	if q.spans == 0 { // as many as there are
		q.spans = maxTempoSpans
	}
	return q, q.parseConditions(v)
}

// parseConditions reads q or tags, and the durations.
func (q *tempoQuery) parseConditions(v url.Values) error {
	text, tags := v.Get("q"), v.Get("tags")
	switch {
	case text != "" && tags != "":
		return errors.New("can't specify tags and q in the same query")
	case text != "":
		parsed, err := traceql.Parse(text)
		if err != nil {
			return explainSyntax(err)
		}
		q.set, q.fields = parsed.Set, shownFields(&parsed)
	default:
		where, err := tempoTags(tags)
		if err != nil {
			return invalid("tags", err)
		}
		q.set = storequery.Select{Where: where}
	}
	long, err := traceDurations(v)
	if len(long) > 0 {
		q.set = withCondition(q.set, long)
	}
	return err
}

// explainSyntax returns an error that shows where the mistake is.
func explainSyntax(err error) error {
	var mistake *traceql.Error
	if errors.As(err, &mistake) {
		return fmt.Errorf("invalid TraceQL query: %s", mistake.Detail())
	}
	return err
}

// traceDurations reads the bounds on how long a trace takes.
func traceDurations(v url.Values) (all tracestore.And, err error) {
	least, err := durationParam(v, "minDuration")
	if err != nil {
		return nil, err
	}
	most, err := durationParam(v, "maxDuration")
	if err != nil {
		return nil, err
	}
	if least != 0 {
		all = append(all, traceDuration(tracestore.Ge, least))
	}
	if most != 0 {
		if most < least {
			return nil, invalid("maxDuration", errors.New("must be greater than minDuration"))
		}
		all = append(all, traceDuration(tracestore.Le, most))
	}
	return all, nil
}

func traceDuration(op tracestore.Op, d time.Duration) tracestore.Expr {
	field := tracestore.Field{Place: tracestore.TraceDuration}
	return tracestore.Cond{Field: field, Op: op, Value: tracestore.Number(float64(d.Nanoseconds()))}
}

// withCondition returns a set of those spans of set on which a condition on their trace holds.
func withCondition(set storequery.SpanSet, where tracestore.Expr) storequery.SpanSet {
	switch s := set.(type) {
	case storequery.Select:
		if s.Where == nil {
			return storequery.Select{Where: where}
		}
		return storequery.Select{Where: tracestore.And{s.Where, where}}
	case storequery.And:
		return storequery.And{Left: withCondition(s.Left, where), Right: s.Right} // which chooses nothing where Left does not
	case storequery.Or:
		return storequery.Or{Left: withCondition(s.Left, where), Right: withCondition(s.Right, where)}
	case storequery.Descendant:
		return storequery.Descendant{Ancestors: s.Ancestors, Spans: withCondition(s.Spans, where)}
	case storequery.Child:
		return storequery.Child{Parents: s.Parents, Spans: withCondition(s.Spans, where)}
	}
	return set
}

// tempoTags reads logfmt, `key=value key2="a value"`: what must hold on one span.
func tempoTags(text string) (tracestore.Expr, error) {
	tags, err := parseLogfmt(text)
	if err != nil {
		return nil, err
	}
	var all tracestore.And
	for _, t := range tags {
		all = append(all, whereTempoTag(t))
	}
	return all, nil
}

// whereTempoTag returns what a tag of a search means; some keys are properties of the span or its trace.
func whereTempoTag(t logfmtTag) tracestore.Expr {
	if place, ok := tempoTagPlaces()[t.key]; ok {
		return condition(tracestore.Field{Place: place}, t)
	}
	switch {
	case !t.hasValue:
		return condition(tracestore.Field{Place: tracestore.AnyAttribute, Key: t.key}, t)
	case t.key == "status.code":
		return storequery.WhereTag("span.status", t.value)
	}
	return storequery.WhereTag(t.key, t.value)
}

func condition(f tracestore.Field, t logfmtTag) tracestore.Expr {
	if !t.hasValue {
		return tracestore.Cond{Field: f, Op: tracestore.Exists}
	}
	return tracestore.Cond{Field: f, Op: tracestore.Eq, Value: tracestore.Text(t.value)}
}

// tempoTagPlaces are the tags that are no attributes.
func tempoTagPlaces() map[string]tracestore.Place {
	return map[string]tracestore.Place{
		serviceKey:          tracestore.Service,
		"name":              tracestore.Name,
		"kind":              tracestore.Kind,
		"status":            tracestore.Status,
		"statusMessage":     tracestore.StatusMessage,
		"duration":          tracestore.Duration,
		"rootServiceName":   tracestore.RootService,
		"root.service.name": tracestore.RootService,
		"rootName":          tracestore.RootName,
		"root.name":         tracestore.RootName,
	}
}
