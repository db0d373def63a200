package segment

import "testing"

// TestSeriesAreCached checks that series are read once, until Drop.
func TestSeriesAreCached(t *testing.T) {
	seg := segmentOfCalls(t, call{service: "a", id: 1}, call{service: "b", id: 2, parent: 1})
	before := seg.droppable()
	first, err := seg.Series()
	if err != nil || len(first.Series) != 2 {
		t.Fatalf("%+v, %v", first, err)
	}
	again, err := seg.Series()
	if err != nil || again != first || seg.droppable() <= before {
		t.Errorf("series were reread or not accounted for: %v, %d bytes, before %d", err, seg.droppable(), before)
	}
	seg.Drop()
	later, err := seg.Series()
	if err != nil || later == first || len(later.Series) != 2 {
		t.Errorf("after Drop: %+v, %v", later, err)
	}
}
