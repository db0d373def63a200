package query

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/tracing-backend/tracing/internal/traceql"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/server"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// valuesRequest is what a request for the values of a tag asks for.
type valuesRequest struct {
	field tracestore.Field
	where tracestore.Expr // only values of spans on which it holds, as far as that can be found out
	limit int
	window
}

var errNoTag = errors.New("please provide a valid tagName")

// tempoTagTexts answers GET /tempo/api/search/tag/{tag}/values: the tag is a key.
func (h *handler) tempoTagTexts(w http.ResponseWriter, r *http.Request) {
	h.answerTagValues(w, r, fieldOfTag, func(dst []byte, _ *turn, _ *valuesRequest, texts []string) ([]byte, error) {
		return append(appendTexts(append(dst, `{"tagValues":`...), texts), `,"metrics":{}}`...), nil
	})
}

// tempoTagValues answers GET /tempo/api/v2/search/tag/{tag}/values: the tag is a field as searches write it, and values have types.
func (h *handler) tempoTagValues(w http.ResponseWriter, r *http.Request) {
	h.answerTagValues(w, r, fieldOfSearch, func(dst []byte, t *turn, q *valuesRequest, texts []string) ([]byte, error) {
		numeric, err := t.hasNumbers(q.field, texts)
		dst = append(dst, `{"tagValues":[`...)
		for i, s := range texts {
			dst = append(append(append(comma(dst, i), `{"type":"`...), typeOf(q.field, s, numeric)...), `","value":`...)
			dst = append(otlpdata.AppendJSONString(dst, s), '}')
		}
		return append(dst, `],"metrics":{}}`...), err
	})
}

func fieldOfTag(tag string) (tracestore.Field, error) {
	if place, ok := tempoTagPlaces()[tag]; ok {
		return tracestore.Field{Place: place}, nil
	}
	return tracestore.Field{Place: tracestore.AnyAttribute, Key: tag}, nil
}

func fieldOfSearch(tag string) (tracestore.Field, error) {
	fields, err := parseFields([]string{tag})
	if err != nil {
		return tracestore.Field{}, fmt.Errorf("%w: %w", errNoTag, errors.Unwrap(err)) // without the name of another parameter
	}
	if len(fields) != 1 {
		return tracestore.Field{}, errNoTag
	}
	return fields[0], nil
}

func parseValues(r *http.Request, field func(string) (tracestore.Field, error)) (q valuesRequest, err error) {
	v, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return q, err
	}
	tag := strings.TrimSuffix(r.PathValue("rest"), valuesSuffix)
	if once, err := url.PathUnescape(tag); err == nil {
		tag = once // some data sources escape it twice
	}
	if tag == "" {
		return q, errNoTag
	}
	if q.field, err = field(tag); err != nil {
		return q, err
	}
	if q.from, q.to, err = tempoWindow(v); err != nil {
		return q, err
	}
	if q.limit, err = tagLimit(v); err != nil {
		return q, err
	}
	q.where = narrowing(v.Get("q"))
	return q, nil
}

const valuesSuffix = "/values"

// narrowing returns the condition of a search, nil where it has none that can be decided span by span. People are still typing it, so
// that it may well be wrong.
func narrowing(text string) tracestore.Expr {
	if text == "" {
		return nil
	}
	q, err := traceql.Parse(text)
	if err != nil {
		return nil
	}
	where, err := spanCondition(q.Set)
	if all, ok := where.(tracestore.And); err != nil || ok && len(all) == 0 {
		return nil
	}
	return where
}

func (h *handler) answerTagValues(w http.ResponseWriter, r *http.Request, field func(string) (tracestore.Field, error),
	answer func(dst []byte, t *turn, q *valuesRequest, texts []string) ([]byte, error),
) {
	if !strings.HasSuffix(r.PathValue("rest"), valuesSuffix) {
		tempoUnknown(w, r)
		return
	}
	q, err := parseValues(r, field)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	t, err := h.admit(r.Context())
	if err != nil {
		h.failedTempo(w, r, err)
		return
	}
	defer t.done()
	var body []byte
	err = h.measure(opGetTagValues, func() (int, error) {
		texts, err := t.tagValues(&q)
		if err == nil {
			texts, err = t.listed(texts)
		}
		if err != nil {
			return 0, err
		}
		texts = texts[:min(len(texts), q.limit)]
		body, err = answer(nil, t, &q, texts)
		return len(texts), err
	})
	if err != nil {
		h.failedTempo(w, r, err)
		return
	}
	h.writeTempo(w, r, func(dst []byte) []byte { return append(dst, body...) })
}

// tagValues returns the values of a field. Where they cannot be narrowed down, they are those of all spans.
func (t *turn) tagValues(q *valuesRequest) ([]string, error) {
	service, ofService := onlyService(q.where)
	switch q.field.Place {
	case tracestore.Kind:
		return []string{"client", "consumer", "internal", "producer", "server", "unspecified"}, nil
	case tracestore.Status:
		return []string{"error", "ok", "unset"}, nil
	case tracestore.Duration, tracestore.TraceDuration: // any
		return nil, nil
	case tracestore.RootService:
		return t.backend.store.Services(t, server.Tenant(t))
	case tracestore.RootName:
		return t.namesOf(q.limit)
	case tracestore.Name:
		if ofService {
			return t.namesOf(q.limit, service)
		}
	}
	if q.where != nil || !isListed(q.field.Place) {
		if texts, ok, err := t.sampledValues(q); ok || err != nil {
			return texts, err
		}
	}
	switch q.field.Place {
	case tracestore.Service:
		return t.backend.store.Services(t, server.Tenant(t))
	case tracestore.Name:
		return t.namesOf(q.limit)
	}
	catalog, ok := t.backend.store.(tracestore.AttributeCatalog)
	if !ok || q.field.Key == "" {
		return nil, nil
	}
	return catalog.AttributeValues(t, server.Tenant(t), q.field.Key, "", q.limit)
}

// isListed reports whether the values of a place are in the catalogs of stores.
func isListed(p tracestore.Place) bool {
	switch p {
	case tracestore.StatusMessage, tracestore.ScopeName, tracestore.ScopeVersion, tracestore.EventName, tracestore.ParentID:
		return false
	}
	return true
}

// onlyService returns the service where that is all that a condition asks for.
func onlyService(e tracestore.Expr) (service string, ok bool) {
	if all, is := e.(tracestore.And); is && len(all) == 1 {
		e = all[0]
	}
	c, ok := e.(tracestore.Cond)
	return c.Value.Text, ok && c.Field.Place == tracestore.Service && c.Op == tracestore.Eq && !c.Value.IsNumber
}

// namesOf returns the sorted names of the operations of services, or of all services, about limit of them.
func (t *turn) namesOf(limit int, services ...string) (names []string, err error) {
	if len(services) == 0 {
		if services, err = t.backend.store.Services(t, server.Tenant(t)); err != nil {
			return nil, err
		}
	}
	for _, service := range services {
		ops, err := t.backend.store.Operations(t, server.Tenant(t), service, "")
		if err != nil {
			return nil, err
		}
		for _, op := range ops {
			names = append(names, op.Name)
		}
		slices.Sort(names)
		if names = slices.Compact(names); len(names) > limit {
			break
		}
	}
	return names, nil
}

// sampledValues returns the sorted values of those spans on which the condition holds, of a sample of them where there are many. It is
// false for stores that cannot tell.
func (t *turn) sampledValues(q *valuesRequest) (texts []string, ok bool, err error) {
	store, ok := t.backend.store.(tracestore.Aggregator)
	if !ok {
		return nil, false, nil
	}
	facets := tracestore.FacetQuery{Values: min(q.limit, tracestore.MaxFacetValues), Fields: []tracestore.Field{q.field}}
	a := aggregated{store: store, window: q.window, where: q.where, Aggregation: tracestore.Aggregation{Facets: facets}}
	found, err := a.ask(t)
	if err != nil {
		return nil, true, err
	}
	for _, f := range found.Facets.Facets {
		for _, v := range f.Values {
			texts = append(texts, v.Text)
		}
	}
	slices.Sort(texts)
	return texts, true, nil
}

// hasNumbers reports whether a field that has values which look like numbers has numbers: catalogs list only texts.
func (t *turn) hasNumbers(f tracestore.Field, texts []string) (bool, error) {
	if f.Key == "" || !slices.ContainsFunc(texts, isNumber) {
		return false, nil
	}
	any := tracestore.Cond{Field: f, Op: tracestore.Ge, Value: tracestore.Number(math.Inf(-1))}
	results, err := t.backend.store.Find(t, tracestore.Query{
		Tenant: server.Tenant(t), Where: any, Limit: 1, Budget: tracestore.Budget{Spans: t.backend.limits.aggregated},
	}, tracestore.WantIDs)
	if err != nil {
		return false, err
	}
	for _, err := range results.All {
		return err == nil, err
	}
	return false, nil
}

func isNumber(s string) bool {
	_, err := strconv.ParseFloat(s, 64)
	return err == nil
}

// typeOf returns the type of a value, by which data sources decide how to write it in a search.
func typeOf(f tracestore.Field, text string, numeric bool) string {
	switch {
	case f.Place == tracestore.Kind || f.Place == tracestore.Status:
		return "keyword"
	case f.Key == "":
		return "string"
	case text == "true" || text == "false":
		return "bool"
	case !numeric || !isNumber(text):
		return "string"
	}
	if _, err := strconv.ParseInt(text, 10, 64); err == nil {
		return "int"
	}
	return "float"
}
