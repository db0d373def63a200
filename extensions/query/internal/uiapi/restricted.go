package uiapi

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/httpapi"
	"github.com/tracing-backend/tracing/extensions/query/internal/uiapi/route"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// Limits on the work for completions that a search restricts. Users wait for completions while they
// type, and notice delays above about a third of a second.
const (
	completionTime  = 300 * time.Millisecond
	completionSpans = 50_000 // examined individually; common values occur in any sample of this size
)

// restriction restricts completions to names and values on spans that a search may select. A nil
// restriction allows all.
type restriction struct {
	agg        core.Aggregation
	incomplete tracestore.Reasons // what the store could not read
}

// restriction parses `q`, `start` and `end`. It returns nil if there is no `q`, or if the store
// cannot count spans.
func (a *API) restriction(ctx context.Context, v url.Values) (*restriction, error) {
	set, err := httpapi.OptionalSetParam(a.backend.Language(ctx), v, "q")
	if err != nil || set == nil {
		return nil, err
	}
	r := &restriction{agg: core.Aggregation{Where: storequery.Cover(set), MaxSpans: completionSpans, MaxTime: completionTime}}
	if r.agg.Window, err = route.WindowParams(v, a.backend.Now()); err != nil {
		return nil, err
	}
	var ok bool
	if r.agg.Store, ok = core.StoreAs[tracestore.Aggregator](ctx, a.backend); !ok {
		return nil, nil
	}
	return r, nil
}

// keys returns the requested attributes of a scope, the most frequent first. ok is false if the
// store should list all attributes instead, because time ran out or because no attribute was found
// in an incomplete sample.
func (r *restriction) keys(slot *core.Slot, scope attributeScope, want wanted, limit int) (found namesAnswer, ok bool, err error) {
	switch {
	case r == nil:
		return found, false, nil
	case scope.place > tracestore.ResourceAttribute: // other places are not counted unless they are named
		return found, false, nil
	}
	facets, exact, err := r.count(slot, tracestore.FacetQuery{Values: 1})
	if facets == nil || err != nil {
		return found, false, err
	}
	var names []string
	for i := range facets.Facets {
		f := facets.Facets[i].Field
		if !f.Place.HasKey() || scope.place != tracestore.AnyAttribute && scope.place != f.Place || !want.has(f.Key) {
			continue
		}
		if name := scope.nameOf(f.Key); len(f.Key) <= core.MaxListedText && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	exact = exact && facets.Omitted == 0
	return restricted(names, limit, exact)
}

// values is like keys, for the values of a field. Names of spans are restricted to a service unless
// service is "".
func (r *restriction) values(
	slot *core.Slot, f tracestore.Field, service string, want wanted, limit int,
) (found namesAnswer, ok bool, err error) {
	if r == nil || f.Place.OfTrace() || f.Place.Info().Type == tracestore.DurationField {
		return found, false, nil
	}
	if f.Place == tracestore.Name && service != "" {
		of := tracestore.Cond{Field: tracestore.Field{Place: tracestore.Service}, Op: tracestore.Eq, Value: tracestore.Text(service)}
		r.agg.Where = tracestore.And{r.agg.Where, of}
	}
	if pattern := want.pattern(); pattern != nil {
		matches := tracestore.Cond{Field: f, Op: tracestore.Like, Value: tracestore.Pattern(pattern)}
		r.agg.Where = tracestore.And{r.agg.Where, matches}
	}
	q := tracestore.FacetQuery{Values: min(limit+1, tracestore.MaxFacetValues), Fields: []tracestore.Field{f}}
	facets, exact, err := r.count(slot, q)
	if facets == nil || err != nil {
		return found, false, err
	}
	var names []string
	for _, value := range facets.Facets[0].Values {
		// Truncated texts are not values.
		if want.has(value.Text) && value.Text != "" && len(value.Text) <= storequery.MaxFacetText-utf8.UTFMax {
			names = append(names, value.Text)
		}
	}
	return restricted(names, limit, exact && facets.Facets[0].Distinct <= len(facets.Facets[0].Values))
}

// restricted returns at most limit names. exact is false if there may be others.
func restricted(names []string, limit int, exact bool) (namesAnswer, bool, error) {
	out := limited(names, limit)
	out.More = out.More || !exact
	return out, exact || len(names) > 0, nil
}

// count counts facets. The result is nil if time ran out. exact reports whether all spans were
// examined.
func (r *restriction) count(slot *core.Slot, q tracestore.FacetQuery) (f *tracestore.Facets, exact bool, err error) {
	r.agg.Spec.Facets = q
	found, err := slot.Aggregate(&r.agg)
	if err != nil && slot.Context().Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		return nil, false, nil
	}
	if !found.Complete() {
		r.incomplete = found.Reasons
	}
	return found.Facets, found.Complete() && found.Share == 1, err
}
