package core

import (
	"reflect"
	"testing"

	"go.uber.org/goleak"

	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestLinks(t *testing.T) {
	edges := []tracestore.Edge{{Parent: "a", Child: "a", Calls: 9}, {Parent: "a", Child: "b", Calls: 1},
		{Parent: "a", Child: "b", Messaging: true, Calls: 2},
		{Parent: "b", Child: "a", Calls: 4}, {Parent: "b", Child: "c", Messaging: true, Calls: 8}}
	ab, ba, bc := Link{"a", "b", 3}, Link{"b", "a", 4}, Link{"b", "c", 8}
	for service, want := range map[string][]Link{"": {ab, ba, bc}, "a": {ab, ba}, "b": {ab, ba, bc}, "c": {bc}, "d": nil} {
		if got := Links(edges, service); !reflect.DeepEqual(got, want) {
			t.Errorf("of %q: %v, want %v", service, got, want)
		}
	}
}
