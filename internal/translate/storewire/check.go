package storewire

import (
	"cmp"
	"reflect"
	"strings"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// checkOf returns the function that validates decoded values of a type, or nil. An unknown constant
// in a request is an error, because ignoring it would change the result.
func checkOf(t reflect.Type) func(v any) error {
	switch t {
	case reflect.TypeFor[tracestore.Op]():
		return check(func(op *tracestore.Op) error { return known(*op <= tracestore.Exists, "operator %d", *op) })
	case reflect.TypeFor[otlpdata.ValueKind]():
		return check(func(k *otlpdata.ValueKind) error {
			return known(*k == otlpdata.ValueEmpty || *k == otlpdata.ValueString || *k == otlpdata.ValueBool, "kind %d of a literal", *k)
		})
	case reflect.TypeFor[tracestore.Arithmetic]():
		return check(func(a *tracestore.Arithmetic) error {
			return known(strings.IndexByte("+-*/%^", a.Op) >= 0, "operator %q", a.Op)
		})
	case reflect.TypeFor[tracestore.Want]():
		return check(func(w *tracestore.Want) error { return known(*w <= tracestore.WantFull, "want %d", *w) })
	case reflect.TypeFor[tracestore.HeatCell]():
		return check(func(c *tracestore.HeatCell) error {
			return known(c.Bucket >= 0 && c.Bucket < tracestore.HeatBuckets, "duration bucket %d of a heatmap cell", c.Bucket)
		})
	case reflect.TypeFor[tracestore.PathProfile]():
		return check(checkPaths)
	case reflect.TypeFor[tracestore.Reason]():
		return check(checkReason)
	case reflect.TypeFor[tracestore.Connection]():
		return check(func(c *tracestore.Connection) error {
			if int(*c) >= tracestore.Connections { // of a newer server
				*c = tracestore.ConnectionUnknown
			}
			return nil
		})
	}
	return nil
}

func check[T any](f func(*T) error) func(any) error { return func(v any) error { return f(v.(*T)) } }

func known(ok bool, format string, args ...any) error {
	if ok {
		return nil
	}
	return invalid("unknown "+format, args...)
}

// checkPaths returns an error unless the parent of each call path comes before it.
func checkPaths(p *tracestore.PathProfile) error {
	for i := range p.Paths {
		if parent := p.Paths[i].Parent; parent < -1 || parent >= i {
			return invalid("parent %d of call path %d", parent, i)
		}
	}
	return nil
}

// checkReason keeps a result from looking complete if this program does not understand why it is
// not.
func checkReason(r *tracestore.Reason) error {
	if r.Kind > tracestore.ReasonUnavailable {
		r.Kind = tracestore.ReasonOther
	}
	r.Text = cmp.Or(r.Text, "the response is incomplete")
	return nil
}
