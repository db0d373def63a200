package tempo

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/httpapi"
	"github.com/tracing-backend/tracing/internal/traceql"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// valuesRequest holds the parameters of a request for the values of a tag.
type valuesRequest struct {
	field  tracestore.Field
	where  tracestore.Expr // limits the spans, as far as the store can; nil for all
	limit  int
	window core.Window
}

var errNoTag = errors.New("please provide a valid tagName")

// tagValues serves GET /tempo/api/search/tag/{tag}/values, where the tag is a key.
func (a *API) tagValues(w http.ResponseWriter, r *http.Request) {
	a.answerTagValues(w, r, fieldOfTag, func(dst []byte, _ *core.Slot, _ *valuesRequest, texts []string) ([]byte, error) {
		return append(appendTexts(append(dst, `{"tagValues":`...), texts), `,"metrics":{}`...), nil
	})
}

// tagValuesV2 serves GET /tempo/api/v2/search/tag/{tag}/values, where the tag is a field of the
// search language and values have types.
func (a *API) tagValuesV2(w http.ResponseWriter, r *http.Request) {
	a.answerTagValues(w, r, fieldOfSearch, func(dst []byte, slot *core.Slot, q *valuesRequest, texts []string) ([]byte, error) {
		numeric, err := hasNumbers(slot, q.field, texts)
		dst = append(dst, `{"tagValues":[`...)
		for i, s := range texts {
			dst = append(append(append(httpapi.Comma(dst, i), `{"type":"`...), typeOf(q.field, s, numeric)...), `","value":`...)
			dst = append(otlpdata.AppendJSONString(dst, s), '}')
		}
		return append(dst, `],"metrics":{}`...), err
	})
}

// fieldOfTag returns the field for a key.
func fieldOfTag(l traceql.Language, tag string) (tracestore.Field, error) {
	if place, ok := placeOfTag(tag); ok {
		return tracestore.Field{Place: place}, nil
	}
	return l.Attribute(tracestore.AnyAttribute, tag), nil
}

// fieldOfSearch parses a field as written in searches.
func fieldOfSearch(l traceql.Language, tag string) (tracestore.Field, error) {
	fields, err := httpapi.ParseFields(l, tag)
	if err != nil {
		return tracestore.Field{}, fmt.Errorf("%w: %w", errNoTag, err)
	}
	if len(fields) != 1 {
		return tracestore.Field{}, errNoTag
	}
	return fields[0], nil
}

// parseValues parses a request for the values of a tag. field returns the field for the tag.
func parseValues(
	l traceql.Language, tag string, v url.Values, field func(traceql.Language, string) (tracestore.Field, error),
) (q valuesRequest, err error) {
	if tag == "" {
		return q, errNoTag
	}
	if q.field, err = field(l, tag); err != nil {
		return q, err
	}
	if q.window, err = windowParams(v); err != nil {
		return q, err
	}
	if q.limit, err = tagLimit(v); err != nil {
		return q, err
	}
	q.where = narrowing(l, v.Get("q"))
	return q, nil
}

// tagOfPath returns the tag in the path of a request.
func tagOfPath(r *http.Request) string {
	tag := strings.TrimSuffix(r.PathValue("rest"), valuesSuffix)
	if once, err := url.PathUnescape(tag); err == nil {
		return once // some data sources escape it twice
	}
	return tag
}

const valuesSuffix = "/values"

// narrowing returns the condition of a search on single spans, or nil if it has none. Users are
// still typing the search, so mistakes are ignored.
func narrowing(l traceql.Language, text string) tracestore.Expr {
	if text == "" {
		return nil
	}
	q, err := l.Parse(text)
	if err != nil {
		return nil
	}
	where, err := httpapi.SpanCondition(q.Set)
	if all, ok := where.(tracestore.And); err != nil || ok && len(all) == 0 {
		return nil
	}
	return where
}

func (a *API) answerTagValues(w http.ResponseWriter, r *http.Request, field func(traceql.Language, string) (tracestore.Field, error),
	answer func(dst []byte, slot *core.Slot, q *valuesRequest, texts []string) ([]byte, error),
) {
	if !strings.HasSuffix(r.PathValue("rest"), valuesSuffix) {
		NotFound(w, r)
		return
	}
	v, err := httpapi.Query(r)
	var q valuesRequest
	if err == nil {
		q, err = parseValues(a.backend.Language(r.Context()), tagOfPath(r), v, field)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	slot, err := a.backend.Admit(r.Context(), core.OpGetTagValues)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	defer slot.Release()
	var body []byte
	err = slot.Measure(func() (int, error) {
		texts, incomplete, err := q.list(slot)
		if err != nil {
			return 0, err
		}
		body, err = answer(nil, slot, &q, texts)
		body = closeList(body, incomplete)
		return len(texts), err
	})
	if err != nil {
		a.fail(w, r, err)
		return
	}
	a.write(w, r, func(dst []byte) []byte { return append(dst, body...) })
}

// closeList completes a response with a list of names or values. incomplete says why some are
// missing.
func closeList(dst []byte, incomplete tracestore.Reasons) []byte {
	return append(httpapi.AppendWarnings(dst, core.IncompleteMessage(incomplete)), '}')
}

// list returns the values, at most as many as the limit. incomplete says why some are missing.
func (q *valuesRequest) list(slot *core.Slot) (texts []string, incomplete tracestore.Reasons, err error) {
	names, err := listValues(slot, q)
	if err != nil {
		return nil, nil, err
	}
	if texts, err = slot.Listed(names.List); err != nil {
		return nil, nil, err
	}
	if len(texts) > q.limit {
		texts = texts[:q.limit]
		names.Incomplete.Add(core.NamesLeftOut(q.limit))
	}
	return texts, names.Incomplete, nil
}

// listValues returns the values of a field. If the store cannot restrict them to some spans, it
// returns the values of all spans.
func listValues(slot *core.Slot, q *valuesRequest) (names core.Names[string], err error) {
	info := q.field.Place.Info()
	service, ofService := onlyService(q.where)
	switch {
	case info.Type == tracestore.WordField:
		return core.Names[string]{List: slices.Sorted(slices.Values(info.Words))}, nil
	case info.Type == tracestore.DurationField: // any
		return names, nil
	case info.Catalog == tracestore.Name && ofService && !info.OfTrace:
		return operationNames(slot, q.limit, service)
	}
	listed := info.Catalog != 0 || info.Place.HasKey()
	if !info.OfTrace && (q.where != nil || !listed) {
		if names, ok, err := sampledValues(slot, q); ok || err != nil {
			return names, err
		}
	}
	switch info.Catalog {
	case tracestore.Service:
		return serviceNames(slot, q.limit)
	case tracestore.Name:
		return operationNames(slot, q.limit)
	}
	if q.field.Key == "" {
		return names, nil
	}
	names, _, err = slot.AttributeValues(q.field, "", q.limit)
	return names, err
}

// serviceNames returns names of services.
func serviceNames(slot *core.Slot, limit int) (core.Names[string], error) {
	return slot.Services(tracestore.NameQuery{Limit: limit})
}

// onlyService returns the service if the condition selects a service and nothing else.
func onlyService(e tracestore.Expr) (service string, ok bool) {
	if all, is := e.(tracestore.And); is && len(all) == 1 {
		e = all[0]
	}
	c, ok := e.(tracestore.Cond)
	return c.Value.Text, ok && c.Field.Place == tracestore.Service && c.Op == tracestore.Eq && !c.Value.IsNumber
}

// maxNameServices is the maximum number of services whose operations are listed together.
const maxNameServices = 500

// operationNames returns sorted names of operations of the given services, or of all services: at
// least limit names if there are that many.
func operationNames(slot *core.Slot, limit int, services ...string) (names core.Names[string], err error) {
	if len(services) == 0 {
		if names, err = serviceNames(slot, maxNameServices); err != nil {
			return names, err
		}
		services = names.List
	}
	known := make(map[string]bool)
	for i, service := range services {
		ops, err := slot.Operations(service, "", tracestore.NameQuery{})
		if err != nil {
			return names, err
		}
		for _, op := range ops.List {
			known[op.Name] = true
		}
		names.Incomplete.Add(ops.Incomplete...)
		if len(known) > limit && i+1 < len(services) {
			names.Incomplete.Add(core.NamesLeftOut(limit))
			break
		}
	}
	names.List = slices.Sorted(maps.Keys(known))
	return names, nil
}

// sampledValues returns the sorted values of spans that meet the condition, or of a sample if there
// are many such spans. ok is false if the store cannot aggregate.
func sampledValues(slot *core.Slot, q *valuesRequest) (names core.Names[string], ok bool, err error) {
	store, ok := core.SlotAs[tracestore.Aggregator](slot)
	if !ok {
		return names, false, nil
	}
	facets := tracestore.FacetQuery{Values: min(q.limit, tracestore.MaxFacetValues), Fields: []tracestore.Field{q.field}}
	found, err := slot.Aggregate(&core.Aggregation{
		Store: store, Window: q.window, Where: q.where, Spec: tracestore.Aggregation{Facets: facets},
	})
	if err != nil {
		return names, true, err
	}
	for _, f := range found.Facets.Facets {
		for _, v := range f.Values {
			names.List = append(names.List, v.Text)
		}
	}
	slices.Sort(names.List)
	names.Incomplete = found.Reasons
	return names, true, nil
}

// hasNumbers reports whether values of a field that look like numbers are numbers.
func hasNumbers(slot *core.Slot, f tracestore.Field, texts []string) (bool, error) {
	if f.Key == "" || !slices.ContainsFunc(texts, core.LooksLikeNumber) {
		return false, nil
	}
	return slot.HasNumbers(f, core.Window{}, slot.Limits().Aggregated)
}

// typeOf returns the type of a value. Data sources need it to write the value in a search.
func typeOf(f tracestore.Field, text string, numeric bool) string {
	switch {
	case f.Place.Info().Type == tracestore.WordField:
		return "keyword"
	case f.Key == "":
		return "string"
	case text == "true" || text == "false":
		return "bool"
	case !numeric || !core.LooksLikeNumber(text):
		return "string"
	}
	if _, err := strconv.ParseInt(text, 10, 64); err == nil {
		return "int"
	}
	return "float"
}
