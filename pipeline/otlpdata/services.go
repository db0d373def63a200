package otlpdata

import (
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// counter is the visitor of the validating walk. It counts spans, or log records, per service.
type counter struct {
	services []ServiceCount
	service  string // of the current resource
	current  int    // index of service in services; -1 before its first span
	spans    int
	index    map[string]int // of services; nil while there are few
}

// Resource sets the current service.
func (c *counter) Resource(r *Resource) error {
	c.service, c.current = r.Service, -1
	return nil
}

// Scope does nothing.
func (c *counter) Scope(*Scope) error { return nil }

// Span counts the span.
func (c *counter) Span(s *Span) error {
	c.add(s.ParentID == SpanID{}, s.NativeFlags()&FlagDebug != 0)
	return nil
}

func (c *counter) add(root, debug bool) {
	c.spans++
	if c.current < 0 {
		c.current = c.find(c.service)
	}
	c.services[c.current].Add(root, debug)
}

func (c *counter) merge(s ServiceCount) {
	n := &c.services[c.find(s.Service)]
	n.Spans += s.Spans
	n.Roots += s.Roots
	n.Debug.Spans += s.Debug.Spans
	n.Debug.Roots += s.Debug.Roots
}

// find returns the index of a service and adds the service if necessary. Most requests hold a few
// services, so the list is searched linearly until it is long.
func (c *counter) find(service string) int {
	const many = 16
	if c.index != nil {
		if i, ok := c.index[service]; ok {
			return i
		}
	} else {
		for i := range c.services {
			if c.services[i].Service == service {
				return i
			}
		}
	}
	// The name aliases the request. A copy lets the request be freed before the counts.
	service = strings.Clone(service)
	c.services = append(c.services, ServiceCount{Service: service})
	switch {
	case c.index != nil:
		c.index[service] = len(c.services) - 1
	case len(c.services) == many:
		c.index = make(map[string]int, 2*many)
		for i, s := range c.services {
			c.index[s.Service] = i
		}
	}
	return len(c.services) - 1
}

// serviceOf is ServiceName for pdata attributes.
func serviceOf(attributes pcommon.Map) string {
	v, ok := attributes.Get(serviceNameKey)
	switch {
	case !ok:
		return MissingServiceName
	case v.Type() != pcommon.ValueTypeStr:
		return WrongTypeServiceName
	case v.Str() == "":
		return EmptyServiceName
	}
	return v.Str()
}
