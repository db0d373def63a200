package find

import (
	"encoding/hex"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// outcomes is the set of results that a condition may have.
type outcomes uint8

const (
	mayFail outcomes = 1 << iota
	mayHold
	either = mayFail | mayHold
)

func outcomeOf(holds bool) outcomes {
	if holds {
		return mayHold
	}
	return mayFail
}

// not returns the outcomes of the negation.
func (o outcomes) not() outcomes { return o&mayFail<<1 | o&mayHold>>1 }

// traceFacts is what is known of a trace.
type traceFacts struct {
	id                *otlpdata.TraceID // nil: unknown
	shortest, longest uint64            // bounds of its duration in nanoseconds
	roots             []rootAt          // its root is one of these; empty: unknown
}

// rootAt is the shape of a root span in a source.
type rootAt struct {
	src   int
	shape uint32
}

// traceCondition is a condition on the trace.
type traceCondition struct {
	expr   tracestore.Expr
	tables []*rows.Tables // by source; nil if its roots are unknown
	known  map[rootCondition]outcomes
}

// rootCondition is a condition on the root, and a root.
type rootCondition struct {
	number int // of the condition in the expression
	root   rootAt
}

// mayHold reports whether the condition may hold for a trace.
func (c *traceCondition) mayHold(f *traceFacts) bool {
	number := 0
	return c.evaluate(c.expr, f, &number)&mayHold != 0
}

// evaluate evaluates a part of the condition. number is the number of the next Cond.
func (c *traceCondition) evaluate(e tracestore.Expr, f *traceFacts, number *int) outcomes {
	switch e := e.(type) {
	case nil:
		return mayHold
	case tracestore.And:
		all := mayHold
		for _, part := range e {
			o := c.evaluate(part, f, number)
			all = all&o&mayHold | (all|o)&mayFail
		}
		return all
	case tracestore.Or:
		all := mayFail
		for _, part := range e {
			o := c.evaluate(part, f, number)
			all = all&o&mayFail | (all|o)&mayHold
		}
		return all
	case tracestore.Not:
		return c.evaluate(e.Expr, f, number).not()
	case tracestore.Cond:
		*number++
		switch e.Field.Place {
		case tracestore.TraceID:
			return idOutcomes(e, f)
		case tracestore.TraceDuration:
			return durationOutcomes(e, f)
		}
		return c.rootOutcomes(e, f, *number)
	}
	return mayFail
}

// idOutcomes evaluates a condition on the id of the trace.
func idOutcomes(c tracestore.Cond, f *traceFacts) outcomes {
	if f.id == nil {
		return either
	}
	return outcomeOf(c.Holds(otlpdata.StringValue(hex.EncodeToString(f.id[:]))))
}

// durationOutcomes evaluates a condition on the duration of the trace.
func durationOutcomes(c tracestore.Cond, f *traceFacts) outcomes {
	first, last := c.Holds(otlpdata.DoubleValue(float64(f.shortest))), c.Holds(otlpdata.DoubleValue(float64(f.longest)))
	switch c.Op {
	case tracestore.Lt, tracestore.Le, tracestore.Gt, tracestore.Ge: // monotonic
		return outcomeOf(first) | outcomeOf(last)
	case tracestore.Eq, tracestore.Ne:
		if n := c.Value.Number; c.Value.IsNumber && (n < float64(f.shortest) || n > float64(f.longest)) {
			return outcomeOf(c.Op == tracestore.Ne)
		}
	}
	return either
}

// rootOutcomes evaluates the condition with a number on the root of the trace.
func (c *traceCondition) rootOutcomes(e tracestore.Cond, f *traceFacts, number int) (all outcomes) {
	if len(f.roots) == 0 {
		return either
	}
	for _, root := range f.roots {
		key := rootCondition{number, root}
		o, ok := c.known[key]
		if !ok {
			o = c.rootOutcome(e, root)
			c.known[key] = o
		}
		all |= o
	}
	return all
}

func (c *traceCondition) rootOutcome(e tracestore.Cond, root rootAt) outcomes {
	t := c.tables[root.src]
	if t == nil || int(root.shape) >= len(t.Shapes) {
		return either
	}
	shape := &t.Shapes[root.shape]
	switch {
	case e.Field.Place == tracestore.RootService:
		return outcomeOf(e.Holds(otlpdata.StringValue(shape.Service)))
	case e.Field.Place == tracestore.RootName && !shape.NameInRow:
		name := otlpdata.Span{Name: shape.Name}
		return outcomeOf(e.Holds(otlpdata.StringValue(name.Operation())))
	}
	return either
}
