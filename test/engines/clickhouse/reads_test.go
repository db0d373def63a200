package clickhouse_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tracing-backend/tracing/exporters/clickhouse"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storetest"
	"github.com/tracing-backend/tracing/test/engines/clickhouse/engine"
	"github.com/tracing-backend/tracing/test/harness"
)

// TestEqualStarts checks a search whose pages end between spans with the same start.
func TestEqualStarts(t *testing.T) {
	s := engine.Shared(t)
	database := s.Database(t)
	e := openOn(t, s, database, nil).(storetest.Subject)
	const early, same, late = 100, 700, 50 // traces; a page has 256 rows
	s.Exec(t, fmt.Sprintf("INSERT INTO %s.spans (start, day, trace_id) SELECT 10 + (number >= %d) + (number >= %d), today(), "+
		"reinterpretAsFixedString(toUInt128(number + 1)) FROM numbers(%d)", database, early, early+same, early+same+late))
	for _, where := range []tracestore.Expr{nil, tracestore.Cond{Field: tracestore.Field{Place: tracestore.Service}}} {
		found, err := e.Find(t.Context(), tracestore.Query{Where: where}, tracestore.WantIDs)
		if err != nil {
			t.Fatal(err)
		}
		var all []tracestore.Result
		seen := make(map[otlpdata.TraceID]bool)
		for r, err := range found.All {
			if err != nil {
				t.Fatal(err)
			}
			if n := len(all); n > 0 && (all[n-1].Start < r.Start || all[n-1].Start == r.Start && string(all[n-1].ID[:]) <= string(r.ID[:])) {
				t.Fatalf("%s at %d follows %s at %d", r.ID, r.Start, all[n-1].ID, all[n-1].Start)
			}
			all, seen[r.ID] = append(all, r), true
		}
		if want := early + same + late; len(all) != want || len(seen) != want || !found.Outcome().Complete() {
			t.Errorf("%d results, %d traces, want %d; outcome %+v", len(all), len(seen), want, found.Outcome())
		}
	}
}

// TestCanceledSearch checks that the server ends the statement of a search whose caller leaves.
func TestCanceledSearch(t *testing.T) {
	s := engine.Shared(t)
	database := s.Database(t)
	e := openOn(t, s, database, nil).(storetest.Subject)
	s.Exec(t, "INSERT INTO "+database+".spans (start, day) VALUES (1, today())")
	s.Exec(t, "RENAME TABLE "+database+".spans TO "+database+".stored")
	s.Exec(t, "CREATE VIEW "+database+".spans AS SELECT s.* FROM "+database+".stored AS s CROSS JOIN system.numbers AS n "+
		"WHERE sipHash64(n.number, s.start) = 1") // does not end
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	failed := make(chan error, 1)
	go func() {
		found, err := e.Find(ctx, tracestore.Query{}, tracestore.WantIDs)
		if err == nil {
			for _, err = range found.All {
			}
		}
		failed <- err
	}()
	running := func() bool {
		return strings.TrimSpace(s.Exec(t, "SELECT countIf(position(query, concat('"+database+"', '`.`spans')) > 0) FROM system.processes")) != "0"
	}
	harness.Poll(t, "start of the statement", running)
	cancel()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", err)
	}
	harness.Poll(t, "end of the statement", func() bool { return !running() })
}

// TestRowLimit checks that a search that the server ends at a limit is reported as not complete.
func TestRowLimit(t *testing.T) {
	s := engine.Shared(t)
	database := s.Database(t)
	e := openOn(t, s, database, func(c *clickhouse.Config, _ *pipeline.Settings) { c.Query.MaxRows = 1000 }).(storetest.Subject)
	s.Exec(t, "INSERT INTO "+database+".spans (start, day, trace_id) SELECT number, today(), "+
		"reinterpretAsFixedString(toUInt128(number + 1)) FROM numbers(20000)")
	found, err := e.Find(t.Context(), tracestore.Query{}, tracestore.WantIDs)
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range found.All {
		if err != nil {
			t.Fatal(err)
		}
	}
	if o := found.Outcome(); o.Complete() || !strings.Contains(o.Text(), "maximum number of rows") {
		t.Errorf("outcome %+v, want one that names the limit", o)
	}
}
