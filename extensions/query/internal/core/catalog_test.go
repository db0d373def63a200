package core_test

import (
	"context"
	"slices"
	"testing"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/querytest"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// damagedStore lists the key of an attribute as its only value, and reports damage for each key but
// whole.
type damagedStore struct{ *querytest.Store }

func (damagedStore) AttributeValues(_ context.Context, _, key, _ string, _ int) ([]string, error) {
	if key == "whole" {
		return []string{key}, nil
	}
	return []string{key}, tracestore.Damaged(key+" is damaged", nil)
}

// TestDamageOfNames checks that a list of values reports the damage of all names of an attribute.
func TestDamageOfNames(t *testing.T) {
	b, _ := querytest.NewBackend(t, damagedStore{querytest.NewStore(ptrace.NewTraces())})
	slot, err := b.Admit(t.Context(), core.OpGetTags)
	if err != nil {
		t.Fatal(err)
	}
	defer slot.Release()
	for _, c := range []struct {
		names  []string
		damage string
	}{
		{[]string{"a", "b", "whole"}, "a is damaged; b is damaged"},
		{[]string{"whole"}, ""},
	} {
		f := tracestore.Field{Place: tracestore.SpanAttribute, Key: c.names[0], Names: tracestore.JoinNames(c.names...)}
		got, ok, err := slot.AttributeValues(f, "", 10)
		if !ok || err != nil || got.Damage.Text() != c.damage || !slices.Equal(got.List, c.names) {
			t.Errorf("%q: %q, %q, %t, %v", c.names, got.List, got.Damage.Text(), ok, err)
		}
	}
}
