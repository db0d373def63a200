package tracestore

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Check returns an error for users if the aggregation is invalid for a query.
func (a *Aggregation) Check(q Query) error {
	if a.Exemplars < 0 || a.Exemplars > MaxExemplars {
		return fmt.Errorf("%d exemplars requested; the number must be between 0 and %d", a.Exemplars, MaxExemplars)
	}
	if err := a.Heatmap.check(q); err != nil {
		return err
	}
	if err := a.Facets.check(); err != nil {
		return err
	}
	return a.Groups.check(q)
}

func (h HeatmapQuery) check(q Query) error {
	if h.Step < 0 {
		return fmt.Errorf("heatmap column width %s must not be negative", h.Step)
	}
	from, to, ok := q.Window()
	if h.Step == 0 || !ok {
		return nil
	}
	if step := uint64(h.Step); to/step-from/step < MaxColumns {
		return nil
	}
	if q.From.IsZero() || q.To.IsZero() {
		return errors.New("heatmap requires a time range with a start and an end")
	}
	width := min((to-from)/(MaxColumns-1)+1, math.MaxInt64)
	return fmt.Errorf("heatmap of this time range with column width %s has more than %d columns; use a column width of at least %s",
		h.Step, MaxColumns, time.Duration(width))
}

func (f *FacetQuery) check() error {
	if f.Values < 0 || f.Values > MaxFacetValues {
		return fmt.Errorf("%d facet values requested; the number must be between 0 and %d", f.Values, MaxFacetValues)
	}
	if len(f.Fields) > MaxFacets {
		return fmt.Errorf("%d facet fields exceed the maximum of %d", len(f.Fields), MaxFacets)
	}
	seen := make(map[Field]struct{}, len(f.Fields))
	for _, field := range f.Fields {
		if !field.Place.known() {
			return fmt.Errorf("unknown facet field place %d", field.Place)
		}
		if field.Place.Info().SearchOnly {
			return fmt.Errorf("facet field %s is only for searches", field.Place.Info().Name)
		}
		if _, twice := seen[field]; twice {
			return fmt.Errorf("duplicate facet field: place %d, key %q", field.Place, field.Key)
		}
		seen[field] = struct{}{}
	}
	return nil
}
