package core_test

import (
	"context"
	"slices"
	"testing"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/querytest"
	"github.com/tracing-backend/tracing/extensions/query/internal/semconv"
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

// listingStore lists two keys and cannot aggregate.
type listingStore struct{ *querytest.Store }

func (listingStore) AttributeKeys(context.Context, string, string, int) ([]string, error) {
	return []string{"http.method", "http.request.method"}, nil
}

// aggregatingStore is a listingStore that can aggregate.
type aggregatingStore struct {
	listingStore
	tracestore.Aggregator
}

// TestListedNames checks that older names of an attribute are hidden only if searches for the
// newest name find them.
func TestListedNames(t *testing.T) {
	full := querytest.FullStore{Store: querytest.NewStore(ptrace.NewTraces())}
	listing := listingStore{full.Store}
	names, err := semconv.New(semconv.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		store core.Store
		names *semconv.Names
		want  []string
	}{
		{listing, names, []string{"http.method", "http.request.method"}},
		{aggregatingStore{listing, full}, nil, []string{"http.method", "http.request.method"}},
		{aggregatingStore{listing, full}, names, []string{"http.request.method"}},
	} {
		b, _ := querytest.NewBackend(t, c.store, func(o *core.Options) { o.Names = c.names })
		slot, err := b.Admit(t.Context(), core.OpGetTags)
		if err != nil {
			t.Fatal(err)
		}
		got, ok, err := slot.AttributeKeys("", 10)
		if !ok || err != nil || !slices.Equal(got.List, c.want) {
			t.Errorf("%T: %q, %t, %v; want %q", c.store, got.List, ok, err, c.want)
		}
		slot.Release()
	}
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
