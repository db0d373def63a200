package tracestore

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Check says, in words for the user, why an aggregation cannot be had for a query.
func (a *Aggregation) Check(q Query) error {
	if a.Exemplars < 0 || a.Exemplars > MaxExemplars {
		return fmt.Errorf("%d examples are not between 0 and %d", a.Exemplars, MaxExemplars)
	}
	if err := a.Heatmap.check(q); err != nil {
		return err
	}
	return a.Facets.check()
}

func (h HeatmapQuery) check(q Query) error {
	if h.Step < 0 {
		return fmt.Errorf("a heatmap cannot have columns of %s", h.Step)
	}
	from, to, ok := q.Window()
	if h.Step == 0 || !ok {
		return nil
	}
	if step := uint64(h.Step); to/step-from/step < MaxColumns {
		return nil
	}
	if q.From.IsZero() || q.To.IsZero() {
		return errors.New("a heatmap needs a time range with a beginning and an end")
	}
	least := min((to-from)/(MaxColumns-1)+1, math.MaxInt64)
	return fmt.Errorf("a heatmap of this time range in columns of %s would have more than %d of them; use columns of at least %s",
		h.Step, MaxColumns, time.Duration(least))
}

func (f *FacetQuery) check() error {
	if f.Values < 0 || f.Values > MaxFacetValues {
		return fmt.Errorf("%d values of a field are not between 0 and %d", f.Values, MaxFacetValues)
	}
	if len(f.Fields) > MaxFacets {
		return fmt.Errorf("%d fields are more than %d", len(f.Fields), MaxFacets)
	}
	seen := make(map[Field]struct{}, len(f.Fields))
	for _, field := range f.Fields {
		if field.Place > RootName {
			return fmt.Errorf("there is no place %d", field.Place)
		}
		if _, twice := seen[field]; twice {
			return fmt.Errorf("a field is named twice: place %d, key %q", field.Place, field.Key)
		}
		seen[field] = struct{}{}
	}
	return nil
}
