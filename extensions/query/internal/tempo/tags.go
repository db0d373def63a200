package tempo

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/httpapi"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// maxTags is the maximum and the default number of names or values in a response. It is what data
// sources request.
const maxTags = 5000

// scopeSample is the maximum number of spans that are examined to find the scopes of attributes.
const scopeSample = 20_000

// The scopes of tags, in the order in which they are listed.
const (
	scopeResource        = "resource"
	scopeSpan            = "span"
	scopeEvent           = "event"
	scopeLink            = "link"
	scopeInstrumentation = "instrumentation"
	scopeTrace           = "trace"
	scopeIntrinsic       = "intrinsic"
)

// intrinsics returns the sorted names of fields that are not attributes.
func intrinsics() (names []string) {
	for _, p := range tracestore.Places() {
		names = append(names, p.TraceQL...)
	}
	slices.Sort(names)
	return names
}

// tagsRequest holds the parameters of a request for tag names.
type tagsRequest struct {
	scope  string // "" for all
	limit  int    // per scope
	window core.Window
}

func parseTags(v url.Values) (q tagsRequest, err error) {
	if q.window, err = windowParams(v); err != nil {
		return q, err
	}
	if q.limit, err = tagLimit(v); err != nil {
		return q, err
	}
	switch q.scope = v.Get("scope"); q.scope {
	case "none":
		q.scope = ""
	case "", scopeResource, scopeSpan, scopeEvent, scopeLink, scopeInstrumentation, scopeTrace, scopeIntrinsic:
	default:
		return q, fmt.Errorf("invalid scope: %s", clip(q.scope))
	}
	return q, nil
}

// tagLimit parses the limit of a list. 0 means the maximum.
func tagLimit(v url.Values) (int, error) {
	n, err := countParam(v, "limit", maxTags, 0, maxTags)
	if n == 0 {
		n = maxTags
	}
	return n, err
}

// scopedTags is the names of a scope.
type scopedTags struct {
	scope string
	tags  []string
}

// merge returns the names of all scopes as one list. more reports whether it exceeds the limit.
func (q *tagsRequest) merge(scopes map[string][]string) (names []string, more bool) {
	all := make(map[string]bool)
	for scope, tags := range scopes {
		if q.scope == "" && scope == scopeIntrinsic {
			continue
		}
		for _, name := range tags {
			all[name] = true
		}
	}
	names = slices.Sorted(maps.Keys(all))
	return names[:min(len(names), q.limit)], len(names) > q.limit
}

// order returns the scopes that have names. more reports whether one exceeds the limit.
func (q *tagsRequest) order(scopes map[string][]string) (lists []scopedTags, more bool) {
	for _, scope := range []string{scopeResource, scopeSpan, scopeEvent, scopeLink, scopeInstrumentation, scopeIntrinsic} {
		if tags := scopes[scope]; len(tags) > 0 {
			more = more || len(tags) > q.limit
			lists = append(lists, scopedTags{scope, tags[:min(len(tags), q.limit)]})
		}
	}
	return lists, more
}

// tagNames serves GET /tempo/api/search/tags with one list.
func (a *API) tagNames(w http.ResponseWriter, r *http.Request) {
	a.answerTagNames(w, r, func(dst []byte, q *tagsRequest, scopes map[string][]string) ([]byte, bool) {
		names, more := q.merge(scopes)
		dst = appendTexts(append(dst, `{"tagNames":`...), names)
		return append(dst, `,"metrics":{}`...), more
	})
}

// tagNamesV2 serves GET /tempo/api/v2/search/tags with a list for each scope that has names.
func (a *API) tagNamesV2(w http.ResponseWriter, r *http.Request) {
	a.answerTagNames(w, r, func(dst []byte, q *tagsRequest, scopes map[string][]string) ([]byte, bool) {
		lists, more := q.order(scopes)
		dst = append(dst, `{"scopes":[`...)
		for i, l := range lists {
			dst = append(append(append(httpapi.Comma(dst, i), `{"name":"`...), l.scope...), `","tags":`...)
			dst = append(appendTexts(dst, l.tags), '}')
		}
		return append(dst, `],"metrics":{}`...), more
	})
}

func appendTexts(dst []byte, texts []string) []byte {
	dst = append(dst, '[')
	for i, s := range texts {
		dst = otlpdata.AppendJSONString(httpapi.Comma(dst, i), s)
	}
	return append(dst, ']')
}

func (a *API) answerTagNames(
	w http.ResponseWriter, r *http.Request, answer func([]byte, *tagsRequest, map[string][]string) (_ []byte, more bool),
) {
	v, err := httpapi.Query(r)
	var q tagsRequest
	if err == nil {
		q, err = parseTags(v)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	slot, err := a.backend.Admit(r.Context(), core.OpGetTags)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	defer slot.Release()
	var scopes map[string][]string
	var incomplete tracestore.Reasons
	err = slot.Measure(func() (n int, err error) {
		scopes, incomplete, err = tagScopes(slot, q)
		for _, names := range scopes {
			n += len(names)
		}
		return n, err
	})
	if err != nil {
		a.fail(w, r, err)
		return
	}
	a.write(w, r, func(dst []byte) []byte {
		dst, more := answer(dst, &q, scopes)
		if more {
			incomplete.Add(core.NamesLeftOut(q.limit))
		}
		return closeList(dst, incomplete)
	})
}

// tagScopes returns sorted names by scope. incomplete says why names are missing.
func tagScopes(slot *core.Slot, q tagsRequest) (_ map[string][]string, incomplete tracestore.Reasons, _ error) {
	scopes := make(map[string][]string)
	if q.scope == "" || q.scope == scopeIntrinsic {
		scopes[scopeIntrinsic] = intrinsics()
	}
	if q.scope == scopeIntrinsic {
		return scopes, nil, nil
	}
	if err := slot.HoldAggregation(core.FacetMemory); err != nil { // for seenKeys
		return nil, nil, err
	}
	keys, err := attributeKeys(slot)
	if err != nil {
		return nil, nil, err
	}
	seen, err := seenKeys(slot, q.window, keys.List)
	if err != nil {
		return nil, nil, err
	}
	for _, key := range keys.List {
		for _, scope := range scopesOf(key, seen) {
			if q.scope == "" || q.scope == scope {
				scopes[scope] = append(scopes[scope], key)
			}
		}
	}
	return scopes, keys.Incomplete, nil
}

// attributeKeys returns the keys of all attributes. If the store has no catalog of attributes, it
// returns only the service key.
func attributeKeys(slot *core.Slot) (core.Names[string], error) {
	keys, ok, err := slot.AttributeKeys("", maxTags)
	switch {
	case err != nil:
		return keys, err
	case !ok:
		keys.List = []string{core.ServiceKey}
		return keys, nil
	}
	keys.List, err = slot.Listed(keys.List)
	return keys, err
}

// seenKeys returns the attributes of a sample of spans: frequent attributes of spans and resources
// and, for other keys, attributes of events, links and scopes. All names of an attribute count as
// seen. It returns nothing if the store cannot aggregate.
func seenKeys(slot *core.Slot, w core.Window, keys []string) (map[tracestore.Field]bool, error) {
	seen := make(map[tracestore.Field]bool)
	store, ok := core.SlotAs[tracestore.Aggregator](slot)
	if !ok {
		return seen, nil
	}
	q := tracestore.Query{Tenant: slot.Tenant(), From: w.From, To: w.To,
		Budget: tracestore.Budget{Spans: min(scopeSample, slot.Limits().Aggregated)}}
	look := func(fields []tracestore.Field) error {
		found, err := store.Aggregate(slot.Context(), q, tracestore.Aggregation{Facets: tracestore.FacetQuery{Values: 1, Fields: fields}})
		if err != nil {
			return err
		}
		for _, f := range found.Facets.Facets {
			for name := range slot.Language().Attribute(f.Field.Place, f.Field.Key).EachName() {
				seen[name] = seen[name] || f.Spans > 0
			}
		}
		return nil
	}
	err := look(nil)
	if rest := elsewhere(keys, seen); err == nil && len(rest) > 0 {
		err = look(rest)
	}
	if core.IsBusy(err) {
		return seen, nil // the scopes of the other keys are guessed
	}
	return seen, err
}

// elsewhere returns the fields in which to look for keys that were not seen on spans and resources.
func elsewhere(keys []string, seen map[tracestore.Field]bool) (fields []tracestore.Field) {
	for _, key := range keys {
		if len(seenScopes(key, seen)) > 0 {
			continue
		}
		for _, p := range []tracestore.Place{tracestore.EventAttribute, tracestore.LinkAttribute, tracestore.ScopeAttribute} {
			fields = append(fields, tracestore.Field{Place: p, Key: key})
		}
	}
	return fields[:min(len(fields), tracestore.MaxFacets)]
}

// scopesOf returns the scopes in which a key was seen. Catalogs of stores do not record scopes, so
// the scopes of other keys, which are rare, are guessed from OpenTelemetry's semantic conventions.
// A search for `.key` finds the key in all scopes.
func scopesOf(key string, seen map[tracestore.Field]bool) []string {
	if scopes := seenScopes(key, seen); len(scopes) > 0 {
		return scopes
	}
	first, _, _ := strings.Cut(key, ".")
	switch first {
	case "exception":
		return []string{scopeEvent}
	case "service", "telemetry", "host", "os", "process", "container", "k8s", "cloud", "deployment", "device":
		return []string{scopeResource}
	}
	return []string{scopeSpan}
}

func seenScopes(key string, seen map[tracestore.Field]bool) (scopes []string) {
	for _, p := range tracestore.Places() {
		known := seen[tracestore.Field{Place: p.Place, Key: key}] || p.Place == tracestore.ResourceAttribute && key == core.ServiceKey
		if known && p.Place.HasKey() && p.Place != tracestore.AnyAttribute {
			scopes = append(scopes, strings.TrimSuffix(p.Name, "."))
		}
	}
	return scopes
}
