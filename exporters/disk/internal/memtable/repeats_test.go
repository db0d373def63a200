package memtable

import (
	"testing"
	"time"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/pipeline/soak"
	"github.com/tracing-backend/tracing/test/bench"
)

// shares appends requests to a table and returns the bytes of all records, and of the first and the
// repeated definitions in them.
func shares(t *testing.T, requests func(func(bench.Request) bool)) (all, first, repeated int) {
	t.Helper()
	table := New(Options{MaxRows: 1 << 30, MaxBytes: 1 << 40, Limits: Limits{Services: 1 << 20, Resources: 1 << 20}})
	defer table.Release()
	seen := map[rows.Definition]bool{}
	for r := range requests {
		batch := batchOf(t, r.Body, "")
		out, err := table.Append(batch, 0)
		if err != nil || out.Spans != batch.Len() {
			t.Fatalf("%d of %d spans appended, %v", out.Spans, batch.Len(), err)
		}
		for record := joined(out); len(record) > 0; {
			tag, payload, rest, err := rows.NextItem(record)
			if err != nil {
				t.Fatal(err)
			}
			n := len(record) - len(rest)
			all, record = all+n, rest
			switch d := rows.ReadDefinition(tag, payload); {
			case tag == rows.TagRow || tag == rows.TagPosition:
			case seen[d]:
				repeated += n
			default:
				seen[d] = true
				first += n
			}
		}
	}
	return all, first, repeated
}

// Definitions are repeated, and the cost of that is limited.
func TestRepeats(t *testing.T) {
	soak.SkipIfRaced(t)
	d := bench.New(7, time.Unix(1_800_000_000, 0))
	all, first, repeated := shares(t, d.Requests(60_000, 500))
	t.Logf("usual: %d bytes, %d of definitions, %d of repeated ones", all, first, repeated)
	if repeated < first*9/10 || repeated > first {
		t.Errorf("%d bytes of definitions, %d repeated, want nearly all", first, repeated)
	}
	all, first, repeated = shares(t, d.Hostile(bench.UniqueServices, 20_000, 500))
	t.Logf("unique services: %d bytes, %d of definitions, %d of repeated ones", all, first, repeated)
	if limit := freeRepeats + all/repeatShare; repeated == 0 || repeated > limit {
		t.Errorf("%d bytes repeated, want at most %d", repeated, limit)
	}
}
