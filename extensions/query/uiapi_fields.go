package query

import (
	"errors"
	"net/url"
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/internal/traceql"
	"github.com/tracing-backend/tracing/pipeline/server"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

const (
	defaultCompletions = 50
	maxCompletions     = 1000
)

// property is a field that is no attribute, as searches write it.
type property struct {
	Name   string   `json:"name"`
	Type   string   `json:"type"`             // text, word, duration or boolean
	Values []string `json:"values,omitempty"` // all that there are
}

// properties returns the fields of the search language that are no attributes.
func properties() []property {
	truth := []string{"false", "true"}
	return []property{
		{"duration", "duration", nil},
		{"error", "boolean", truth},
		{"event:name", "text", nil},
		{"instrumentation:name", "text", nil},
		{"instrumentation:version", "text", nil},
		{"kind", "word", []string{"client", "consumer", "internal", "producer", "server", "unspecified"}},
		{"name", "text", nil},
		{"root", "boolean", truth},
		{"service", "text", nil},
		{"status", "word", []string{"error", "ok", "unset"}},
		{"statusMessage", "text", nil},
		{"trace.duration", "duration", nil},
		{"trace.rootName", "text", nil},
		{"trace.rootService", "text", nil},
	}
}

// attributeScope is where attributes are looked for, and what stands before their names.
type attributeScope struct {
	prefix string
	place  tracestore.Place
}

func attributeScopes() []attributeScope {
	return []attributeScope{
		{"span.", tracestore.SpanAttribute}, {"resource.", tracestore.ResourceAttribute}, {"event.", tracestore.EventAttribute},
		{"link.", tracestore.LinkAttribute}, {"instrumentation.", tracestore.ScopeAttribute}, {".", tracestore.AnyAttribute},
	}
}

// splitScope cuts off the scope with which a part of a name begins.
func splitScope(part string) (scope attributeScope, key string) {
	for _, s := range attributeScopes() {
		if key, ok := strings.CutPrefix(part, s.prefix); ok {
			return s, key
		}
	}
	return attributeScope{place: tracestore.AnyAttribute}, part
}

// nameOf returns how searches write an attribute, with the scope that was written. The service has names like an attribute's, too.
func (s attributeScope) nameOf(key string) string {
	if key == serviceKey && (s.place == tracestore.AnyAttribute || s.place == tracestore.ResourceAttribute) {
		return s.prefix + key
	}
	if s.prefix == "" {
		if fields, err := parseFields([]string{key}); err == nil && len(fields) == 1 && fields[0].Place == s.place && fields[0].Key == key {
			return key
		}
	}
	return traceql.FormatField(tracestore.Field{Place: s.place, Key: key})
}

// namesAnswer is the data of GET /api/ui/v1/keys and values.
type namesAnswer struct {
	Names []string `json:"names"`
	More  bool     `json:"more"` // than limit
}

// maxListed is how many bytes a name or value has at most that is listed for people to choose from.
const maxListed = 1 << 10

// listed accounts for texts that a store listed, whose list it may share, and leaves out those that are too long to choose from.
func (t *turn) listed(texts []string) ([]string, error) {
	size := int64(0)
	for _, s := range texts {
		size += int64(len(s))
	}
	if err := t.holdBytes(t.held + size); err != nil {
		return nil, err
	}
	tooLong := func(s string) bool { return len(s) > maxListed }
	if slices.ContainsFunc(texts, tooLong) {
		texts = slices.DeleteFunc(slices.Clone(texts), tooLong)
	}
	return texts, nil
}

func namesOf(names []string, limit int) namesAnswer {
	out := namesAnswer{Names: names[:min(len(names), limit)], More: len(names) > limit}
	if out.Names == nil {
		out.Names = []string{}
	}
	return out
}

// keys reads GET /api/ui/v1/keys: the names of fields that begin with a prefix, with which a scope may be written. Properties come first.
func (h *handler) keys(v url.Values) (question, error) {
	limit, err := countParam(v, "limit", defaultCompletions, maxCompletions)
	if err != nil {
		return nil, err
	}
	prefix := v.Get("prefix")
	var names []string
	for _, p := range properties() {
		if strings.HasPrefix(p.Name, prefix) {
			names = append(names, p.Name)
		}
	}
	scope, begin := splitScope(prefix)
	store, ok := h.store.(tracestore.AttributeCatalog)
	if !ok {
		return func(*turn) (any, string, error) { return namesOf(names, limit), "", nil }, nil
	}
	return func(t *turn) (any, string, error) {
		found, err := store.AttributeKeys(t, server.Tenant(t), begin, limit+1)
		if err != nil {
			return nil, "", err
		}
		more := len(found) > limit
		if found, err = t.listed(found); err != nil {
			return nil, "", err
		}
		for _, key := range found {
			names = append(names, scope.nameOf(key))
		}
		answer := namesOf(names, limit)
		answer.More = answer.More || more
		return answer, "", nil
	}, nil
}

var (
	errOneField = errors.New("it must be the name of one field")
	errNoValues = errors.New("values of this field are not listed")
)

// values reads GET /api/ui/v1/values: the values of a field that begin with a prefix; for names of spans those of one service.
func (h *handler) values(v url.Values) (question, error) {
	limit, err := countParam(v, "limit", defaultCompletions, maxCompletions)
	if err != nil {
		return nil, err
	}
	key, prefix := v.Get("key"), v.Get("prefix")
	for _, p := range properties() {
		if p.Name == key && p.Values != nil {
			known := keepPrefix(p.Values, prefix)
			return func(*turn) (any, string, error) { return namesOf(known, limit), "", nil }, nil
		}
	}
	fields, err := parseFields([]string{key})
	if err == nil && len(fields) != 1 {
		err = errOneField
	}
	if err != nil {
		return nil, paramError("key", err)
	}
	list, err := h.lister(fields[0], v.Get("service"))
	if err != nil {
		return nil, paramError("key", err)
	}
	return func(t *turn) (any, string, error) {
		found, err := list(t, prefix, limit+1)
		if err != nil {
			return nil, "", err
		}
		more := len(found) > limit
		found, err = t.listed(found)
		answer := namesOf(found, limit)
		answer.More = more
		return answer, "", err
	}, nil
}

// lister returns what lists the values of a field.
func (h *handler) lister(f tracestore.Field, service string) (func(t *turn, prefix string, limit int) ([]string, error), error) {
	switch f.Place {
	case tracestore.Service, tracestore.RootService:
		return func(t *turn, prefix string, _ int) ([]string, error) {
			names, err := h.store.Services(t, server.Tenant(t))
			return keepPrefix(names, prefix), err
		}, nil
	case tracestore.Name, tracestore.RootName:
		return func(t *turn, prefix string, _ int) ([]string, error) {
			ops, err := h.store.Operations(t, server.Tenant(t), service, "")
			return keepPrefix(namesOfOperations(ops), prefix), err
		}, nil
	}
	store, ok := h.store.(tracestore.AttributeCatalog)
	if !ok || f.Key == "" {
		return nil, errNoValues
	}
	return func(t *turn, prefix string, limit int) ([]string, error) {
		return store.AttributeValues(t, server.Tenant(t), f.Key, prefix, limit)
	}, nil
}

// namesOfOperations returns each name once, whatever kinds its spans are of.
func namesOfOperations(ops []tracestore.Operation) (names []string) {
	for _, op := range ops {
		names = append(names, op.Name)
	}
	return slices.Compact(names)
}

func keepPrefix(names []string, prefix string) (kept []string) {
	for _, n := range names {
		if strings.HasPrefix(n, prefix) {
			kept = append(kept, n)
		}
	}
	return kept
}
