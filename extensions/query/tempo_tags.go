package query

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/server"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// maxTags is how many names or values one answer lists at most, and without a limit in the request: what data sources ask for.
const maxTags = 5000

// scopeSample is how many spans are looked at to find out where attributes are.
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

// tempoIntrinsics are the fields of searches that are no attributes.
func tempoIntrinsics() []string {
	return []string{"duration", "event:name", "instrumentation:name", "instrumentation:version", "kind", "name", "rootName", "rootServiceName",
		"span:duration", "span:kind", "span:name", "span:parentID", "span:status", "span:statusMessage", "status", "statusMessage",
		"trace:duration", "trace:rootName", "trace:rootService", "traceDuration"}
}

// tagsRequest is what the parameters of a request for names of tags ask for.
type tagsRequest struct {
	scope string // "": all
	limit int    // of each scope
	window
}

func parseTagNames(r *http.Request) (q tagsRequest, err error) {
	v, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return q, err
	}
	if q.from, q.to, err = tempoWindow(v); err != nil {
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

// tagLimit reads the limit of a list; 0 is none.
func tagLimit(v url.Values) (int, error) {
	n, err := tempoCount(v, "limit", maxTags, 0, maxTags)
	if n == 0 {
		n = maxTags
	}
	return n, err
}

// tempoTagNames answers GET /tempo/api/search/tags with one list.
func (h *handler) tempoTagNames(w http.ResponseWriter, r *http.Request) {
	h.answerTagNames(w, r, func(dst []byte, q tagsRequest, scopes map[string][]string) []byte {
		if q.scope == "" {
			delete(scopes, scopeIntrinsic)
		}
		all := make(map[string]bool)
		for _, names := range scopes {
			for _, name := range names {
				all[name] = true
			}
		}
		names := slices.Sorted(maps.Keys(all))
		dst = appendTexts(append(dst, `{"tagNames":`...), names[:min(len(names), q.limit)])
		return append(dst, `,"metrics":{}}`...)
	})
}

// tempoTagScopes answers GET /tempo/api/v2/search/tags with a list for each scope that has names.
func (h *handler) tempoTagScopes(w http.ResponseWriter, r *http.Request) {
	h.answerTagNames(w, r, func(dst []byte, q tagsRequest, scopes map[string][]string) []byte {
		dst = append(dst, `{"scopes":[`...)
		n := 0
		for _, scope := range []string{scopeResource, scopeSpan, scopeEvent, scopeLink, scopeInstrumentation, scopeIntrinsic} {
			names := scopes[scope]
			if len(names) == 0 {
				continue
			}
			dst = append(append(append(comma(dst, n), `{"name":"`...), scope...), `","tags":`...)
			dst = append(appendTexts(dst, names[:min(len(names), q.limit)]), '}')
			n++
		}
		return append(dst, `],"metrics":{}}`...)
	})
}

func appendTexts(dst []byte, texts []string) []byte {
	dst = append(dst, '[')
	for i, s := range texts {
		dst = otlpdata.AppendJSONString(comma(dst, i), s)
	}
	return append(dst, ']')
}

func (h *handler) answerTagNames(w http.ResponseWriter, r *http.Request, answer func([]byte, tagsRequest, map[string][]string) []byte) {
	q, err := parseTagNames(r)
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
	var scopes map[string][]string
	err = h.measure(opGetTags, func() (n int, err error) {
		scopes, err = t.tagScopes(q)
		for _, names := range scopes {
			n += len(names)
		}
		return n, err
	})
	if err != nil {
		h.failedTempo(w, r, err)
		return
	}
	h.writeTempo(w, r, func(dst []byte) []byte { return answer(dst, q, scopes) })
}

// tagScopes returns sorted names by scope.
func (t *turn) tagScopes(q tagsRequest) (map[string][]string, error) {
	scopes := make(map[string][]string)
	if q.scope == "" || q.scope == scopeIntrinsic {
		scopes[scopeIntrinsic] = tempoIntrinsics()
	}
	if q.scope == scopeIntrinsic {
		return scopes, nil
	}
	keys, err := t.attributeKeys()
	if err != nil {
		return nil, err
	}
	seen, err := t.seenKeys(q.window, keys)
	if err != nil {
		return nil, err
	}
	for _, key := range keys {
		for _, scope := range scopesOf(key, seen) {
			if q.scope == "" || q.scope == scope {
				scopes[scope] = append(scopes[scope], key)
			}
		}
	}
	return scopes, nil
}

// attributeKeys returns the keys of all attributes; stores that do not know them have at least services.
func (t *turn) attributeKeys() ([]string, error) {
	catalog, ok := t.backend.store.(tracestore.AttributeCatalog)
	if !ok {
		return []string{serviceKey}, nil
	}
	keys, err := catalog.AttributeKeys(t, server.Tenant(t), "", maxTags)
	if err != nil {
		return nil, err
	}
	return t.listed(keys)
}

// seenKeys returns the attributes of a sample of spans: the frequent ones of spans and resources, and those of events, links and scopes
// whose keys are no others. It returns nothing where the store cannot tell.
func (t *turn) seenKeys(w window, keys []string) (map[tracestore.Field]bool, error) {
	seen := make(map[tracestore.Field]bool)
	store, ok := t.backend.store.(tracestore.Aggregator)
	if !ok {
		return seen, nil
	}
	q := tracestore.Query{Tenant: server.Tenant(t), From: w.from, To: w.to,
		Budget: tracestore.Budget{Spans: min(scopeSample, t.backend.limits.aggregated)}}
	if err := t.holdBytes(t.held + t.share(storequery.MaxFacetMemory)); err != nil {
		return nil, err
	}
	look := func(fields []tracestore.Field) error {
		found, err := store.Aggregate(t, q, tracestore.Aggregation{Facets: tracestore.FacetQuery{Values: 1, Fields: fields}})
		if err != nil {
			return err
		}
		for _, f := range found.Facets.Facets {
			seen[f.Field] = f.Spans > 0
		}
		return nil
	}
	if err := look(nil); err != nil {
		return nil, err
	}
	rest := elsewhere(keys, seen)
	if len(rest) == 0 {
		return seen, nil
	}
	return seen, look(rest)
}

// elsewhere returns where keys may be that are not seen in spans and resources.
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

// scopesOf returns the scopes of a key: those in which it was seen. Catalogs of stores do not know scopes, so that the others, which are
// rare, go by the names that OpenTelemetry's conventions give them. A search for the key in any scope (`.key`) finds it.
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
	for _, in := range []struct {
		place tracestore.Place
		scope string
	}{
		{tracestore.ResourceAttribute, scopeResource},
		{tracestore.SpanAttribute, scopeSpan},
		{tracestore.EventAttribute, scopeEvent},
		{tracestore.LinkAttribute, scopeLink},
		{tracestore.ScopeAttribute, scopeInstrumentation},
	} {
		if seen[tracestore.Field{Place: in.place, Key: key}] || key == serviceKey && in.place == tracestore.ResourceAttribute {
			scopes = append(scopes, in.scope)
		}
	}
	return scopes
}
