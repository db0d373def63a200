package pipeline_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/tracing-backend/tracing/pipeline"
)

func TestBudget(t *testing.T) {
	b := pipeline.NewBudget(100)
	check := func(what string, used, peak int64) {
		t.Helper()
		if b.Used() != used || b.Peak() != peak || b.Limit() != 100 {
			t.Errorf("%s: used %d, peak %d, limit %d", what, b.Used(), b.Peak(), b.Limit())
		}
	}
	r, err := b.Reserve(60)
	if err != nil {
		t.Fatal(err)
	}
	check("reserved", 60, 60)
	for _, n := range []int64{41, math.MaxInt64} {
		if _, err := b.Reserve(n); !errors.Is(err, pipeline.ErrOverBudget) || pipeline.GRPCStatus(err).Code() != codes.ResourceExhausted ||
			pipeline.IsPermanent(err) {
			t.Errorf("reserving %d: %v", n, err)
		}
		if err := r.Grow(n); !errors.Is(err, pipeline.ErrOverBudget) {
			t.Errorf("growing by %d: %v", n, err)
		}
	}
	check("refused", 60, 60)
	other, err := b.Reserve(-5)
	if err != nil {
		t.Fatal(err)
	}
	check("less than nothing", 60, 60)
	for _, step := range []struct{ size, used, peak int64 }{{40, 40, 60}, {100, 100, 100}, {0, 0, 100}, {-7, 0, 100}, {10, 10, 100}} {
		if err := r.Resize(step.size); err != nil {
			t.Fatal(err)
		}
		check("resized", step.used, step.peak)
	}
	if err := r.Resize(101); !errors.Is(err, pipeline.ErrOverBudget) {
		t.Errorf("resized beyond the limit: %v", err)
	}
	check("still", 10, 100)
	r.Release()
	r.Release()
	other.Release()
	check("released", 0, 100)
	if err := errors.Join(r.Grow(5), r.Resize(5)); err != nil {
		t.Error(err)
	}
	check("grown after the release", 0, 100)
}

func TestBudgetWithoutLimit(t *testing.T) {
	b := pipeline.NewBudget(0)
	r, err := b.Reserve(1 << 40)
	if err != nil {
		t.Fatal(err)
	}
	r.Shrink(1 << 39)
	if r.Held() != 1<<39 || b.Used() != 1<<39 {
		t.Errorf("held %d, used %d after shrinking", r.Held(), b.Used())
	}
	r.Shrink(1 << 41) // more than is reserved
	if r.Release(); b.Used() != 0 || b.Peak() != 1<<40 {
		t.Errorf("used %d, peak %d", b.Used(), b.Peak())
	}
}

// A budget for queries names its own limit, which can change.
func TestQueryBudget(t *testing.T) {
	b := pipeline.NewQueryBudget(10)
	_, err := b.Reserve(11)
	status, after := pipeline.HTTPStatus(err)
	if !errors.Is(err, pipeline.ErrQueryMemory) || errors.Is(err, pipeline.ErrOverBudget) || status != 429 || after != time.Second ||
		!strings.Contains(err.Error(), "service.limits.query_memory is 10 bytes") {
		t.Errorf("%d after %s: %v", status, after, err)
	}
	b.SetLimit(11)
	r, err := b.Reserve(11)
	if err != nil {
		t.Fatal(err)
	}
	b.SetLimit(5) // less than is reserved
	if r.Grow(1) == nil || r.Resize(4) != nil || r.Grow(1) != nil || b.Used() != 5 {
		t.Errorf("used %d of %d", b.Used(), b.Limit())
	}
}

// The limit holds under concurrent reservations, and all bytes are released in the end.
func TestBudgetHoldsUnderLoad(t *testing.T) {
	const limit = 1000
	b := pipeline.NewBudget(limit)
	var wg sync.WaitGroup
	for g := range 32 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(g), 3))
			for range 500 {
				res, err := b.Reserve(r.Int64N(200))
				if err != nil {
					continue
				}
				var sharing sync.WaitGroup
				for range 2 {
					n, m := r.Int64N(100), r.Int64N(300)
					sharing.Go(func() {
						_ = res.Grow(n) // refused or not: the limit must hold
						_ = res.Resize(m)
						if used := b.Used(); used > limit || used < 0 {
							t.Errorf("used %d bytes, more than the limit", used)
						}
					})
				}
				if r.IntN(2) == 0 {
					sharing.Wait()
				}
				res.Release()
				sharing.Wait()
			}
		})
	}
	wg.Wait()
	if b.Used() != 0 || b.Peak() > limit || b.Peak() == 0 {
		t.Errorf("used %d, peak %d", b.Used(), b.Peak())
	}
}
