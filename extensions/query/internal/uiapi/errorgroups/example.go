package errorgroups

import (
	"strings"
	"time"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/failure"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// example is the newest span of a group that was read.
type example struct {
	service   string
	failure   failure.Failure // without its message and stack trace
	pattern   failure.Pattern
	frame     failure.Frame
	stackless bool // it has no stack trace
	operation string
	message   string
	start     uint64
	traceID   otlpdata.TraceID
	spanID    otlpdata.SpanID
}

// exampleMemory is the approximate maximum memory of an example in bytes.
const exampleMemory = 8*storequery.MaxFacetText + 1024

// maxLookups is the maximum number of groups with a separate search for an example, because the
// newest failed spans contain none.
const maxLookups = 200

// addExample makes a span the example of its group if it is the newest. It returns the id.
func (c *counter) addExample(s tracestore.Span) (id string, err error) {
	id = c.grouper.Group(s.Resource.Service, s.Span)
	old := c.examples[id]
	if old != nil && old.start >= s.Start {
		return id, nil
	}
	if old == nil {
		if err := c.memory.Grow(exampleMemory); err != nil {
			return id, err
		}
		old = c.describe(s)
		c.examples[id] = old
	}
	old.message = strings.Clone(storequery.FacetText(failure.Of(s.Span).Message))
	old.start, old.traceID, old.spanID = s.Start, s.TraceID, s.SpanID
	return id, nil
}

// describe returns the properties that the spans of a group have in common, without retaining the
// span.
func (c *counter) describe(s tracestore.Span) *example {
	f := failure.Of(s.Span)
	e := &example{service: strings.Clone(s.Resource.Service), failure: f, pattern: failure.PatternOf(strings.Clone(f.Message)),
		frame: failure.TopFrame(strings.Clone(f.Stack)), stackless: f.Stack == "", operation: strings.Clone(storequery.FacetText(s.Operation()))}
	e.failure.Type = strings.Clone(storequery.FacetText(f.Type))
	e.failure.TypeValue = strings.Clone(storequery.FacetText(f.TypeValue))
	e.failure.Message, e.failure.Stack = "", ""
	return e
}

// readExamples reads an example of each group: first the newest failed spans, then the last span of
// each remaining group.
func (c *counter) readExamples(w core.Window, list []*group) error {
	missing := make(map[string]uint64, len(list)) // the last starts, by id
	for _, g := range list {
		if e := c.examples[g.id]; e == nil || e.start < g.spans.Last {
			missing[g.id] = g.spans.Last
		}
	}
	r := newReader(c.slot, w, c.where, func(s tracestore.Span) error {
		id, err := c.addExample(s)
		if last, ok := missing[id]; ok && s.Start == last {
			delete(missing, id)
		}
		if err == nil && len(missing) == 0 {
			return errEnough
		}
		return err
	})
	if len(missing) > 0 && c.store != nil {
		if _, err := r.read(); err != nil {
			return err
		}
	}
	lookups := 0
	for _, g := range list {
		if c.examples[g.id] == nil && lookups < maxLookups {
			lookups++
			if err := c.lookUp(g); err != nil {
				return err
			}
		}
		g.example = c.examples[g.id]
	}
	return nil
}

// lookUp reads the last span of a group.
func (c *counter) lookUp(g *group) error {
	last := time.Unix(0, int64(g.spans.Last))
	is := equal(tracestore.Field{Place: tracestore.ErrorGroup}, g.id)
	if c.where.where != nil {
		is = tracestore.And{c.where.where, is}
	}
	r := newReader(c.slot, core.Window{From: last, To: last}, condition{where: is, set: c.where.set}, func(s tracestore.Span) error {
		if _, err := c.addExample(s); err != nil {
			return err
		}
		return errEnough
	})
	_, err := r.read()
	return err
}
