package clickhouse

import (
	"context"
	"fmt"
	"math"
	"math/bits"

	"github.com/tracing-backend/tracing/exporters/clickhouse/internal/where"
)

// rowSample is the part of the rows of a set whose start has a hash below a limit. It is the same
// for every call, and depends only on the starts of spans.
type rowSample struct {
	rows  spanRows
	n     rowCount
	share float64 // of all rows of the set
}

// sample returns all rows of a set if there are at most maxRows and the rows to examine one by one
// are within the budget, otherwise a sample. It has at least one row if the set has one.
func (a *aggregation) sample(ctx context.Context, set spanRows, maxRows uint64) (rowSample, error) {
	budget := uint64(max(a.query.Budget.Spans, 0))
	if budget == 0 {
		budget, maxRows = math.MaxUint64, math.MaxUint64
	}
	limited := func(limit uint64) spanRows {
		if limit == math.MaxUint64 {
			return set
		}
		return spanRows{all: set.all + fmt.Sprintf(" AND intHash64(start) <= %d", limit), examined: set.examined}
	}
	all, err := a.countRows(ctx, spanRows{all: set.all, examined: where.Never})
	if err != nil || all.rows == 0 || set.examined == where.Never && all.rows <= maxRows {
		return rowSample{rows: spanRows{all: set.all, examined: where.Never}, n: all, share: 1}, err
	}
	limit := scaled(math.MaxUint64, maxRows, all.rows)
	for {
		n, err := a.countRows(ctx, limited(limit))
		if err != nil {
			return rowSample{}, err
		}
		switch {
		case n.rows == 0 && limit < math.MaxUint64:
			limit = saturatingProduct(limit, 2)
		case n.examined > budget && n.rows > 1 && limit > 1:
			lower := min(scaled(limit, budget, n.examined), limit-1)
			if some, err := a.countRows(ctx, limited(lower)); err != nil || some.rows > 0 {
				return sampleOf(limited(lower), some, all), err
			}
			return sampleOf(limited(limit), n, all), nil
		default:
			return sampleOf(limited(limit), n, all), nil
		}
	}
}

// sampleOf returns a sample. If no rows are examined, later statements need not test for them,
// which takes longer than counting.
func sampleOf(rows spanRows, n, all rowCount) rowSample {
	if n.examined == 0 {
		rows.examined = where.Never
	}
	s := rowSample{rows: rows, n: n, share: 1}
	if n.rows < all.rows {
		s.share = float64(n.rows) / float64(all.rows)
	}
	return s
}

// rowCount holds the number of rows in a set, and how many of them failed, are selected, and must
// be examined one by one.
type rowCount struct{ rows, failed, selected, examined uint64 }

func (a *aggregation) countRows(ctx context.Context, set spanRows) (n rowCount, err error) {
	sql := "SELECT count(), countIf(status = 'error'), countIf(" + a.selected + "), countIf(" + set.examined + ") FROM " + a.table +
		" WHERE " + set.all
	return n, a.one(ctx, sql, &n.rows, &n.failed, &n.selected, &n.examined)
}

// scaled returns n * part / whole, or n if part is not less than whole.
func scaled(n, part, whole uint64) uint64 {
	if part >= whole {
		return n
	}
	high, low := bits.Mul64(n, part)
	quotient, _ := bits.Div64(high, low, whole) // high is less than whole, because part is
	return quotient
}

// saturatingProduct returns a * b, or the maximum if that overflows.
func saturatingProduct(a, b uint64) uint64 {
	if high, low := bits.Mul64(a, b); high == 0 {
		return low
	}
	return math.MaxUint64
}

// relativeError returns the relative standard error of an estimate of the matching spans from a
// sample of candidates, which are a share of all; see tracestore.Aggregate.
func relativeError(matching, candidates uint64, share float64) float64 {
	switch {
	case share >= 1:
		return 0
	case matching == 0 || candidates == 0:
		return 1
	}
	rest := 1 - float64(matching)/float64(candidates)
	return min(math.Sqrt((1-share)*max(rest, 0)/float64(matching)), 1)
}
