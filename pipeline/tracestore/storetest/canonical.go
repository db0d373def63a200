package storetest

import (
	"fmt"
	"math"
	"strings"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// canonical returns all content of a span, with its resource and scope, as one line. The lines of
// two spans are equal if and only if their content is. The encoding does not matter: a store may
// reencode spans, but must not change or lose content.
func canonical(s tracestore.Span) string {
	var b strings.Builder
	fmt.Fprintf(&b, "resource{%d %q", s.Resource.DroppedAttributes, s.Resource.SchemaURL)
	writeAttributes(&b, s.Resource.Attributes)
	fmt.Fprintf(&b, "} scope{%q %q %d %q", s.Scope.Name, s.Scope.Version, s.Scope.DroppedAttributes, s.Scope.SchemaURL)
	writeAttributes(&b, s.Scope.Attributes)
	fmt.Fprintf(&b, "} span{%x %x<%x %q", s.TraceID[:], s.SpanID[:], s.ParentID[:], s.Name)
	fmt.Fprintf(&b, " state=%q flags=%x kind=%d", s.TraceState, s.Flags, s.Kind)
	fmt.Fprintf(&b, " %d..%d status=%d %q", s.Start, s.End, s.StatusCode, s.StatusMessage)
	fmt.Fprintf(&b, " dropped=%d,%d,%d", s.DroppedAttributes, s.DroppedEvents, s.DroppedLinks)
	writeAttributes(&b, s.Attributes)
	for _, e := range s.Events {
		fmt.Fprintf(&b, " event{%d %q %d", e.Time, e.Name, e.DroppedAttributes)
		writeAttributes(&b, e.Attributes)
		b.WriteByte('}')
	}
	for _, l := range s.Links {
		fmt.Fprintf(&b, " link{%x %x %q %x %d", l.TraceID[:], l.SpanID[:], l.TraceState, l.Flags, l.DroppedAttributes)
		writeAttributes(&b, l.Attributes)
		b.WriteByte('}')
	}
	b.WriteByte('}')
	return b.String()
}

func writeAttributes(b *strings.Builder, kvs []otlpdata.KeyValue) {
	for _, kv := range kvs {
		fmt.Fprintf(b, " %q=", kv.Key)
		writeValue(b, kv.Value)
	}
}

func writeValue(b *strings.Builder, v otlpdata.Value) {
	switch v.Kind() {
	case otlpdata.ValueString:
		fmt.Fprintf(b, "%q", v.Str())
	case otlpdata.ValueBool:
		fmt.Fprintf(b, "%t", v.Bool())
	case otlpdata.ValueInt:
		fmt.Fprintf(b, "%d", v.Int())
	case otlpdata.ValueDouble:
		fmt.Fprintf(b, "double:%x", math.Float64bits(v.Double()))
	case otlpdata.ValueBytes:
		fmt.Fprintf(b, "bytes:%x", v.Bytes())
	case otlpdata.ValueArray:
		b.WriteByte('[')
		for e := range v.Elements() {
			writeValue(b, e)
			b.WriteByte(',')
		}
		b.WriteByte(']')
	case otlpdata.ValueMap:
		b.WriteByte('{')
		for kv := range v.Entries() {
			fmt.Fprintf(b, "%q=", kv.Key)
			writeValue(b, kv.Value)
			b.WriteByte(',')
		}
		b.WriteByte('}')
	default:
		b.WriteString("empty")
	}
}

// describe formats a query for messages.
func describe(q tracestore.Query) string {
	var b strings.Builder
	if q.Tenant != "" {
		fmt.Fprintf(&b, "tenant %q, ", q.Tenant)
	}
	if from, to, ok := q.Window(); ok {
		fmt.Fprintf(&b, "%d..%d, ", from, to)
	}
	if q.After.Set {
		fmt.Fprintf(&b, "after %x@%d, ", q.After.ID[:], q.After.Start)
	}
	fmt.Fprintf(&b, "limit %d, budget %d, where ", q.Limit, q.Budget.Spans)
	describeExpr(&b, q.Where)
	return b.String()
}

func describeExpr(b *strings.Builder, e tracestore.Expr) {
	parts := func(name string, list []tracestore.Expr) {
		b.WriteString(name)
		for i, part := range list {
			if i > 0 {
				b.WriteString(", ")
			}
			describeExpr(b, part)
		}
		b.WriteByte(')')
	}
	switch e := e.(type) {
	case tracestore.And:
		parts("and(", e)
	case tracestore.Or:
		parts("or(", e)
	case tracestore.Not:
		parts("not(", []tracestore.Expr{e.Expr})
	case tracestore.Cond:
		fmt.Fprintf(b, "place %d %q op %d ", e.Field.Place, e.Field.Key, e.Op)
		if e.Field.Parent {
			b.WriteString("of parent ")
		}
		switch {
		case e.Value.Regexp != nil:
			fmt.Fprintf(b, "/%s/", e.Value.Regexp)
		case e.Value.IsNumber:
			fmt.Fprintf(b, "%v", e.Value.Number)
		default:
			fmt.Fprintf(b, "%q", e.Value.Text)
		}
	default:
		fmt.Fprintf(b, "%v", e)
	}
}

// describeSet formats a query with a span set for messages.
func describeSet(q tracestore.Query, set storequery.SpanSet) string {
	var b strings.Builder
	writeSet(&b, set)
	return describe(q) + " of " + b.String()
}

func writeSet(b *strings.Builder, set storequery.SpanSet) {
	binary := func(left storequery.SpanSet, op string, right storequery.SpanSet) {
		b.WriteByte('(')
		writeSet(b, left)
		b.WriteString(op)
		writeSet(b, right)
		b.WriteByte(')')
	}
	switch s := set.(type) {
	case storequery.Select:
		b.WriteByte('{')
		describeExpr(b, s.Where)
		b.WriteByte('}')
	case storequery.And:
		binary(s.Left, " && ", s.Right)
	case storequery.Or:
		binary(s.Left, " || ", s.Right)
	case storequery.Relation:
		binary(s.Left, fmt.Sprintf(" relation %d mode %d ", s.Kind, s.Mode), s.Right)
	default:
		fmt.Fprintf(b, "%v", set)
	}
}
