package zipkin

import (
	"cmp"
	"slices"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// groupKey is the common part of the spans under one resource and scope.
type groupKey struct {
	service        string
	scope, version string
}

// group is a list of spans, in the order of the request.
type group struct {
	groupKey
	nameAttribute string // the attribute of the resource for the service name
	first, last   int    // indexes in grouping.all
}

// groupedSpan is an encoded span and its resource tags. All fields except next are ranges of slices
// of a translator.
type groupedSpan struct {
	from, to              int
	resource, resourceEnd int
	next                  int // next span of the group; 0 if none, because the very first span never is
}

// grouping groups spans by service and scope. Most requests have one group, so the previous group
// is tried first.
type grouping struct {
	all    []groupedSpan
	groups []group
	byKey  map[groupKey]int // nil while there is at most one group
	latest int
}

func (g *grouping) reset() {
	clear(g.groups)
	g.all, g.groups, g.latest, g.byKey = g.all[:0], g.groups[:0], 0, nil
}

func (g *grouping) spans() int { return len(g.all) }

// addSpan adds a span to the group of k. A group takes its other properties from its first span.
func (g *grouping) addSpan(k group, s groupedSpan) {
	at := len(g.all)
	g.all = append(g.all, s)
	if len(g.groups) > 0 && g.groups[g.latest].groupKey == k.groupKey {
		g.append(g.latest, at)
		return
	}
	i, found := g.find(k.groupKey)
	if found {
		g.append(i, at)
		return
	}
	k.first, k.last = at, at
	g.latest = len(g.groups)
	g.groups = append(g.groups, k)
	if g.byKey != nil {
		g.byKey[k.groupKey] = g.latest
	}
}

func (g *grouping) find(k groupKey) (i int, found bool) {
	if len(g.groups) == 0 {
		return 0, false
	}
	if g.byKey == nil {
		g.byKey = map[groupKey]int{g.groups[0].groupKey: 0}
	}
	i, found = g.byKey[k]
	return i, found
}

func (g *grouping) append(i, span int) {
	g.latest = i
	g.all[g.groups[i].last].next = span
	g.groups[i].last = span
}

// finish writes all groups, sorted by service and scope, and returns the request.
func (t *translator) finish() []byte {
	groups := t.groups.groups
	slices.SortFunc(groups, func(a, b group) int {
		return cmp.Or(cmp.Compare(a.service, b.service), cmp.Compare(a.scope, b.scope), cmp.Compare(a.version, b.version))
	})
	var resource []otlpdata.KeyValue
	for i := range groups {
		g := &groups[i]
		if i == 0 || groups[i-1].service != g.service {
			resource = t.beginResource(g)
		}
		t.out.Scope(g.scope, g.version, nil)
		for at := g.first; ; {
			s := &t.groups.all[at]
			t.out.Encoded(t.spanBytes(s, resource))
			if at = s.next; at == 0 {
				break
			}
		}
	}
	return t.out.Bytes()
}

// beginResource writes the resource of the group's service, as the group's first span describes it.
// A tag with the service name is not repeated: exporters that write all resource attributes as tags
// send the name twice.
func (t *translator) beginResource(g *group) []otlpdata.KeyValue {
	s := &t.groups.all[g.first]
	t.span.Attributes = t.span.Attributes[:0]
	if g.service != "" {
		t.span.Attributes = append(t.span.Attributes, text(g.nameAttribute, g.service))
	}
	for _, kv := range t.resource[s.resource:s.resourceEnd] {
		if g.service == "" || kv.Key != g.nameAttribute {
			t.span.Attributes = append(t.span.Attributes, kv)
		}
	}
	t.out.Resource(t.span.Attributes)
	return t.span.Attributes
}

// spanBytes returns the encoded span, with its resource tags that the resource does not contain.
func (t *translator) spanBytes(s *groupedSpan, resource []otlpdata.KeyValue) []byte {
	span := t.encoded[s.from:s.to:s.to]
	for i := s.resource; i < s.resourceEnd; i++ {
		if !contains(resource, &t.resource[i]) {
			span = otlpdata.AppendAttributes(span, t.resource[i:i+1])
		}
	}
	return span
}

// contains reports whether kv is among the first maxSearched attributes of a resource. Ordinary
// resources have fewer; the limit protects against hostile requests.
func contains(resource []otlpdata.KeyValue, kv *otlpdata.KeyValue) bool {
	const maxSearched = 128
	for i := range resource[:min(len(resource), maxSearched)] {
		if resource[i] == *kv {
			return true
		}
	}
	return false
}
