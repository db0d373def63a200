package core_test

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/querytest"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/server"
)

// client returns the context of a request from an address.
func client(t *testing.T, ip string) context.Context {
	t.Helper()
	return server.WithClient(t.Context(), netip.MustParseAddr(ip))
}

// admitMany admits queries of one kind until one is refused, and returns the slots and the error.
func admitMany(ctx context.Context, b *core.Backend, op core.Operation) (slots []*core.Slot, err error) {
	for {
		slot, err := b.Admit(ctx, op)
		if err != nil {
			return slots, err
		}
		slots = append(slots, slot)
	}
}

// One client, whatever it asks, leaves slots for others, and searches leave slots for lists of
// names and single traces.
func TestSlotsAreShared(t *testing.T) {
	b, _ := querytest.NewBackend(t, querytest.NewStore(querytest.Shop()), func(o *core.Options) { o.Limits.Queries = 64 })
	greedy, err := admitMany(client(t, "192.0.2.1"), b, core.OpFindTraces)
	const refused = "client 192.0.2.1 already uses 32 of max_concurrent_queries (64)"
	if len(greedy) != 32 || !core.IsBusy(err) || !strings.Contains(err.Error(), refused) {
		t.Errorf("the first client: %d queries, then %v", len(greedy), err)
	}
	second, err := admitMany(client(t, "192.0.2.2"), b, core.OpFindTraces)
	if len(second) != 16 || !core.IsBusy(err) {
		t.Errorf("the second client: %d queries, then %v", len(second), err)
	}
	for i := range 8 {
		if _, err := b.Admit(client(t, "2001:db8:0:"+string(rune('1'+i))+"::1"), core.OpFindTraces); err != nil {
			t.Fatalf("client %d: %v", 3+i, err)
		}
	}
	_, err = b.Admit(client(t, "192.0.2.3"), core.OpFindTraces)
	if !core.IsBusy(err) || !strings.Contains(err.Error(), "max_concurrent_queries is 64") {
		t.Errorf("a search in the last eighth of the slots: %v", err)
	}
	if _, err := b.Admit(client(t, "192.0.2.3"), core.OpGetServices); err != nil {
		t.Errorf("a list of services: %v", err)
	}
	if _, err := b.Admit(client(t, "192.0.2.1"), core.OpGetServices); err != nil {
		t.Errorf("a list of services for another user behind the first client's proxy: %v", err)
	}
	for _, slot := range greedy {
		slot.Release()
	}
	if again, _ := admitMany(client(t, "192.0.2.1"), b, core.OpGetTrace); len(again) == 0 {
		t.Error("the first client gets no slot after it has released its slots")
	}
}

// Requests without an address, such as requests over a Unix socket, use all slots.
func TestNoShareWithoutAddress(t *testing.T) {
	b, _ := querytest.NewBackend(t, querytest.NewStore(querytest.Shop()))
	if slots, err := admitMany(t.Context(), b, core.OpGetServices); len(slots) != 10 || !core.IsBusy(err) {
		t.Errorf("%d queries, then %v", len(slots), err)
	}
}

// The memory of searches leaves some for the first query of another client, and for lists of names.
func TestQueryMemoryIsShared(t *testing.T) {
	const memory = 64 << 20
	b, _ := querytest.NewBackend(t, querytest.NewStore(querytest.Shop()), func(o *core.Options) { o.Memory = pipeline.NewQueryBudget(memory) })
	hold := func(slot *core.Slot) (held int64) {
		for slot.HoldMore(1<<20) == nil {
			held += 1 << 20
		}
		return held
	}
	admit := func(ip string, op core.Operation) *core.Slot {
		slot, err := b.Admit(client(t, ip), op)
		if err != nil {
			t.Fatal(err)
		}
		return slot
	}
	first, second := admit("192.0.2.1", core.OpFindTraces), admit("192.0.2.1", core.OpFindTraces)
	if held := hold(second); held != memory*3/4-2*core.SlotMemory {
		t.Errorf("the second query of a client holds %d bytes", held)
	}
	if held := hold(admit("192.0.2.2", core.OpFindTraces)); held != memory/8-core.SlotMemory {
		t.Errorf("the first query of another client holds %d bytes", held)
	}
	if err := first.HoldMore(1 << 20); !errors.Is(err, pipeline.ErrQueryMemory) {
		t.Errorf("the first query takes the rest: %v", err)
	}
	if held := hold(admit("192.0.2.2", core.OpGetServices)); held != memory/8-core.SlotMemory {
		t.Errorf("a list of services holds %d bytes", held)
	}
}
