package uiapi

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/httpapi"
	"github.com/tracing-backend/tracing/extensions/query/internal/uiapi/route"
	"github.com/tracing-backend/tracing/internal/traceql"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

const (
	defaultCompletions = 50
	maxCompletions     = 1000
	maxSearched        = 10_000 // names in which a text is searched for
)

// property is a field of the search language that is not an attribute.
type property struct {
	Name   string               `json:"name"`
	Type   tracestore.FieldType `json:"type"`
	Values []string             `json:"values,omitempty"` // all possible values, if there are few
}

// properties returns the fields of the search language that are not attributes, by name.
func properties() (all []property) {
	for _, p := range tracestore.Places() {
		if !p.Place.HasKey() {
			all = append(all, property{p.Name, p.Type, slices.Sorted(slices.Values(p.Words))})
		}
	}
	for _, s := range tracestore.Shorthands() {
		all = append(all, property{s.Name, tracestore.BooleanField, []string{"false", "true"}})
	}
	slices.SortFunc(all, func(a, b property) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// attributeScope is a scope of attributes and its prefix in searches.
type attributeScope struct {
	prefix string
	place  tracestore.Place
}

// splitScope cuts off the scope at the beginning of a part of a name.
func splitScope(part string) (scope attributeScope, key string) {
	for _, p := range tracestore.Places() {
		if key, ok := strings.CutPrefix(part, p.Name); ok && p.Place.HasKey() {
			return attributeScope{p.Name, p.Place}, key
		}
	}
	return attributeScope{place: tracestore.AnyAttribute}, part
}

// nameOf returns an attribute as written in searches, with the scope that the user wrote. The
// service can be written like an attribute.
func (s attributeScope) nameOf(key string) string {
	if key == core.ServiceKey && (s.place == tracestore.AnyAttribute || s.place == tracestore.ResourceAttribute) {
		return s.prefix + key
	}
	if s.prefix == "" {
		fields, err := httpapi.ParseFields(traceql.Language{}, key)
		if err == nil && len(fields) == 1 && fields[0].Place == s.place && fields[0].Key == key {
			return key
		}
	}
	return traceql.FormatField(tracestore.Field{Place: s.place, Key: key})
}

// namesAnswer is the data of GET /api/ui/v1/keys and values.
type namesAnswer struct {
	Names []string `json:"names"`
	More  bool     `json:"more"` // there are more than the limit
	// Restricted reports whether the list contains only names on spans that `q` may select. It is
	// nil if there is no `q`.
	Restricted *bool `json:"restricted,omitempty"`
}

// Length implements route.Listing.
func (n namesAnswer) Length() int { return len(n.Names) }

// restrictedBy sets Restricted if the request has a `q`.
func (n namesAnswer) restrictedBy(v url.Values, restricted bool) namesAnswer {
	if v.Get("q") != "" {
		n.Restricted = &restricted
	}
	return n
}

// limited returns at most limit names.
func limited(names []string, limit int) namesAnswer {
	out := namesAnswer{Names: names[:min(len(names), limit)], More: len(names) > limit}
	if out.Names == nil {
		out.Names = []string{}
	}
	return out
}

// wanted describes the requested names: they begin with `prefix` or contain `text`.
type wanted struct{ prefix, text string }

// wantedNames parses `prefix` and `text`.
func wantedNames(v url.Values) (wanted, error) {
	for _, name := range []string{"prefix", "text"} {
		if !utf8.ValidString(v.Get(name)) {
			return wanted{}, httpapi.ParamError(name, errNotUTF8)
		}
	}
	return wanted{v.Get("prefix"), v.Get("text")}, nil
}

// within returns the same for the part of the names after a scope.
func (w wanted) within() (attributeScope, wanted) {
	scope, prefix := splitScope(w.prefix)
	if w.text != "" {
		scope, w.text = splitScope(w.text)
	}
	return scope, wanted{prefix, w.text}
}

// pattern returns a regular expression for the names, or nil for all.
func (w wanted) pattern() *regexp.Regexp {
	switch {
	case w.text != "":
		return regexp.MustCompile("(?is)" + regexp.QuoteMeta(w.text))
	case w.prefix != "":
		return regexp.MustCompile("(?s)^" + regexp.QuoteMeta(w.prefix))
	}
	return nil
}

// has reports whether a name is asked for.
func (w wanted) has(name string) bool {
	return strings.HasPrefix(name, w.prefix) && strings.Contains(strings.ToLower(name), strings.ToLower(w.text))
}

// of returns the requested names. With `text`, names that begin with it come first.
func (w wanted) of(names []string) []string {
	names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !w.has(name) })
	if text := strings.ToLower(w.text); text != "" {
		begins := func(name string) int { return strings.Index(strings.ToLower(name), text) }
		slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(min(begins(a), 1), min(begins(b), 1)) })
	}
	return names
}

// list returns at least limit names, if there are that many. Stores find names by prefix; names
// that only contain a text are chosen from the first maxSearched names.
func (w wanted) list(slot *core.Slot, limit int, list lister) (core.Names[string], error) {
	found, err := list(slot, tracestore.NameQuery{Prefix: cmp.Or(w.text, w.prefix), Limit: limit})
	if w.text != "" && len(found.List) < limit && err == nil {
		first := found.List
		found, err = list(slot, tracestore.NameQuery{Limit: maxSearched})
		others := slices.DeleteFunc(w.of(found.List), func(name string) bool { return slices.Contains(first, name) })
		found.List = slices.Concat(first, others)
	}
	if err == nil {
		found.List, err = slot.Listed(found.List)
	}
	return found, err
}

// keys parses GET /api/ui/v1/keys, which returns the requested names of fields, properties first.
// `prefix` and `text` can begin with a scope. With `q`, only attributes of spans that it may select
// are returned.
func (a *API) keys(ctx context.Context, v url.Values) (route.Query, error) {
	limit, err := route.CountParam(v, "limit", defaultCompletions, maxCompletions)
	if err != nil {
		return nil, err
	}
	want, err := wantedNames(v)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, p := range properties() {
		names = append(names, p.Name)
	}
	names = want.of(names)
	scope, inScope := want.within()
	search, err := a.restriction(ctx, v)
	if err != nil {
		return nil, err
	}
	return func(slot *core.Slot) (any, tracestore.Reasons, error) {
		some, ok, err := search.keys(slot, scope, inScope, limit)
		if err != nil {
			return nil, nil, err
		}
		if ok {
			answer := limited(append(names, some.Names...), limit)
			answer.More = answer.More || some.More
			return answer.restrictedBy(v, true), search.incomplete, nil
		}
		found, err := inScope.list(slot, limit, func(slot *core.Slot, q tracestore.NameQuery) (core.Names[string], error) {
			keys, _, err := slot.AttributeKeys(q.Prefix, q.Limit)
			return keys, err
		})
		if err != nil {
			return nil, nil, err
		}
		for _, key := range found.List {
			names = append(names, scope.nameOf(key))
		}
		answer := limited(names, limit)
		answer.More = answer.More || found.Cut
		return answer.restrictedBy(v, false), found.Damage, nil
	}, nil
}

var (
	errOneField = errors.New("must be the name of one field")
	errNoValues = errors.New("values of this field are not listed")
	errNotUTF8  = errors.New("must be valid UTF-8")
)

// values parses GET /api/ui/v1/values, which returns the requested values of a field. Span names
// are listed for one service. With `q`, only values of spans that it may select are returned.
func (a *API) values(ctx context.Context, v url.Values) (route.Query, error) {
	limit, err := route.CountParam(v, "limit", defaultCompletions, maxCompletions)
	if err != nil {
		return nil, err
	}
	want, err := wantedNames(v)
	if err != nil {
		return nil, err
	}
	key := v.Get("key")
	for _, p := range properties() {
		if p.Name == key && p.Values != nil {
			known := want.of(p.Values)
			return func(*core.Slot) (any, tracestore.Reasons, error) {
				return limited(known, limit).restrictedBy(v, false), nil, nil
			}, nil
		}
	}
	fields, err := httpapi.ParseFields(a.backend.Language(ctx), key)
	if err == nil && len(fields) != 1 {
		err = errOneField
	}
	if err != nil {
		return nil, httpapi.ParamError("key", err)
	}
	search, err := a.restriction(ctx, v)
	if err != nil {
		return nil, err
	}
	list, err := a.lister(ctx, fields[0], v.Get("service"))
	if err != nil {
		return nil, httpapi.ParamError("key", err)
	}
	return func(slot *core.Slot) (any, tracestore.Reasons, error) {
		if some, ok, err := search.values(slot, fields[0], v.Get("service"), want, limit); ok || err != nil {
			return some.restrictedBy(v, true), search.incomplete, err
		}
		found, err := want.list(slot, limit, list)
		if err != nil {
			return nil, nil, err
		}
		answer := limited(found.List, limit)
		answer.More = answer.More || found.Cut
		return answer.restrictedBy(v, false), found.Damage, nil
	}, nil
}

// lister lists values.
type lister func(slot *core.Slot, q tracestore.NameQuery) (core.Names[string], error)

// lister returns a function that lists the values of a field.
func (a *API) lister(ctx context.Context, f tracestore.Field, service string) (lister, error) {
	switch f.Place.Info().Catalog {
	case tracestore.Service:
		return func(slot *core.Slot, q tracestore.NameQuery) (core.Names[string], error) { return slot.Services(q) }, nil
	case tracestore.Name:
		return func(slot *core.Slot, q tracestore.NameQuery) (core.Names[string], error) {
			q.Limit *= spanKinds
			ops, err := slot.Operations(service, "", q)
			return core.Names[string]{List: operationNames(ops.List), Cut: ops.Cut, Damage: ops.Damage}, err
		}, nil
	}
	if _, ok := core.StoreAs[tracestore.Aggregator](ctx, a.backend); !ok || f.Key == "" {
		return nil, errNoValues
	}
	return func(slot *core.Slot, q tracestore.NameQuery) (core.Names[string], error) {
		values, _, err := slot.AttributeValues(f, q.Prefix, q.Limit)
		return values, err
	}, nil
}

// spanKinds is the maximum number of operations of a service with the same name.
const spanKinds = 6

// operationNames returns each name once, regardless of span kinds.
func operationNames(ops []tracestore.Operation) (names []string) {
	for _, op := range ops {
		names = append(names, op.Name)
	}
	return slices.Compact(names)
}
