package tracestore_test

import (
	"errors"
	"testing"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// Parts of a query charge the account of its context, in steps, and give everything back.
func TestMemory(t *testing.T) {
	const step = 64 << 10
	budget := pipeline.NewQueryBudget(4 * step)
	account, err := budget.Reserve(step)
	if err != nil {
		t.Fatal(err)
	}
	ctx := tracestore.WithAccount(t.Context(), account)
	check := func(m *tracestore.Memory, held, used int64) {
		t.Helper()
		if m.Held() != held || budget.Used() != used {
			t.Errorf("held %d, used %d, want %d and %d", m.Held(), budget.Used(), held, used)
		}
	}
	a, err := tracestore.Reserve(ctx, 1)
	check(a, 1, 2*step)
	b, errB := tracestore.Reserve(ctx, 2*step)
	if err != nil || errB != nil {
		t.Fatal(err, errB)
	}
	check(b, 2*step, 4*step)
	if err := a.Grow(step - 1); err != nil { // is reserved already
		t.Fatal(err)
	}
	for _, more := range []int64{1, 1 << 40} {
		if err := a.Grow(more); !errors.Is(err, pipeline.ErrQueryMemory) || !tracestore.IsOutOfMemory(err) {
			t.Errorf("%d more bytes: %v", more, err)
		}
		check(a, step, 4*step)
	}
	if _, err := tracestore.Reserve(ctx, 1); !errors.Is(err, pipeline.ErrQueryMemory) {
		t.Errorf("another part: %v", err)
	}
	if err := b.Grow(-step); err != nil {
		t.Fatal(err)
	}
	check(b, step, 3*step)
	b.Release()
	b.Release()
	check(b, 0, 2*step)
	account.Release() // the query has ended before the store
	a.Release()
	check(a, 0, 0)
}

// Without an account there is no limit.
func TestMemoryWithoutAccount(t *testing.T) {
	m, err := tracestore.Reserve(t.Context(), 1<<40)
	if err != nil || m.Held() != 1<<40 {
		t.Errorf("%d bytes, %v", m.Held(), err)
	}
	var none *tracestore.Memory
	none.Release()
	if err := none.Grow(1); err != nil || none.Held() != 0 {
		t.Errorf("%d bytes, %v", none.Held(), err)
	}
}
