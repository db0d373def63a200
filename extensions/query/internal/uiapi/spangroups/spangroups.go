package spangroups

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/httpapi"
	"github.com/tracing-backend/tracing/extensions/query/internal/uiapi/route"
	"github.com/tracing-backend/tracing/internal/traceql"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

const defaultGroups = 100

// API serves groups of spans.
type API struct{ backend *core.Backend }

// New returns the API over a backend.
func New(b *core.Backend) *API { return &API{b} }

// Routes returns the routes of the API.
func (a *API) Routes() []httpapi.Route {
	return []httpapi.Route{
		{Pattern: "GET /api/ui/v1/groups", Handler: route.Handler(a.backend, core.OpAggregate, a.parse)},
	}
}

// parse parses GET /api/ui/v1/groups.
func (a *API) parse(ctx context.Context, v url.Values) (route.Query, error) {
	agg, err := route.AggregationParams(ctx, a.backend, v)
	if err != nil {
		return nil, err
	}
	if err := parseOf(v, &agg); err != nil {
		return nil, err
	}
	if agg.Spec.Groups, err = groupParams(a.backend.Language(ctx), v, agg.Traces); err != nil {
		return nil, err
	}
	if err := agg.Check(); err != nil {
		return nil, err
	}
	return func(slot *core.Slot) (any, tracestore.Reasons, error) {
		found, err := slot.Aggregate(&agg)
		if err != nil {
			return nil, nil, err
		}
		return answerOf(&agg, &found), found.Reasons, nil
	}, nil
}

// Values of `of`: what is counted.
const (
	ofSpans  = "spans"
	ofTraces = "traces"
)

var errOf = errors.New("must be spans or traces")

func parseOf(v url.Values, agg *core.Aggregation) error {
	switch v.Get("of") {
	case "", ofSpans:
		return nil
	case ofTraces:
		agg.Traces = true
		route.DependOnTraces(agg)
		return nil
	}
	return httpapi.ParamError("of", errOf)
}

// maxFields is the maximum number of fields to group by.
const maxFields = 2

// groupParams parses `by`, `sort` and `limit`.
func groupParams(l traceql.Language, v url.Values, traces bool) (g tracestore.GroupQuery, err error) {
	if g.By, err = httpapi.ParseFields(l, v["by"]...); err != nil {
		return g, httpapi.ParamError("by", err)
	}
	if len(g.By) == 0 {
		return g, httpapi.ParamError("by", errNoField)
	}
	if len(g.By) > maxFields {
		return g, httpapi.ParamError("by", fmt.Errorf("%d fields exceed the maximum of %d", len(g.By), maxFields))
	}
	for _, f := range g.By {
		if err := checkField(f, traces); err != nil {
			return g, httpapi.ParamError("by", err)
		}
	}
	if g.Limit, err = route.CountParam(v, "limit", defaultGroups, tracestore.MaxGroups); err != nil {
		return g, err
	}
	g.Sort, err = sortParam(v)
	return g, err
}

var errNoField = errors.New("is missing; give one or two fields")

// checkField reports fields by which spans, or traces, cannot be grouped.
func checkField(f tracestore.Field, traces bool) error {
	name := traceql.FormatField(f)
	switch {
	case f.Place.Info().Type == tracestore.DurationField:
		return fmt.Errorf("%s has too many values to group by it", name)
	case !traces && !f.Place.OfSpan():
		return fmt.Errorf("%s groups whole traces; set of=traces", name)
	case traces && f.Place.OfSpan() && f.Place != tracestore.Service:
		return fmt.Errorf("whole traces cannot be grouped by %s; use service, trace.rootService or trace.rootName, or of=spans", name)
	}
	return nil
}

// sortParam parses `sort`.
func sortParam(v url.Values) (tracestore.GroupOrder, error) {
	switch v.Get("sort") {
	case "", "count":
		return tracestore.GroupsBySpans, nil
	case "errors":
		return tracestore.GroupsByErrors, nil
	case "errorShare":
		return tracestore.GroupsByErrorShare, nil
	case "p50":
		return tracestore.GroupsByP50, nil
	case "p95":
		return tracestore.GroupsByP95, nil
	case "p99":
		return tracestore.GroupsByP99, nil
	case "time":
		return tracestore.GroupsByTime, nil
	}
	return 0, httpapi.ParamError("sort", errSort)
}

var errSort = errors.New("must be count, errors, errorShare, p50, p95, p99 or time")
