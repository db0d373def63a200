package scan

import (
	"reflect"
	"testing"

	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// TestBindings checks that each place outside the trace as a whole is bound. One that is not would
// match nothing.
func TestBindings(t *testing.T) {
	for i := range tracestore.Places() {
		p := tracestore.Place(i)
		if bound := !reflect.ValueOf(*BindingOf(p)).IsZero(); bound == p.OfTrace() {
			t.Errorf("%s: bound %t, of the trace %t", p.Info().Name, bound, p.OfTrace())
		}
	}
}
