package clickhouse_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

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

// TestGroupsOfMinutes checks that groups from the table of minutes are the same as from spans, in
// windows that do not begin or end with a minute, and with adjusted counts.
func TestGroupsOfMinutes(t *testing.T) {
	s := engine.Shared(t)
	database := s.Database(t)
	store := as[tracestore.Aggregator](t, openOn(t, s, database, nil))
	const minute = uint64(time.Minute)
	insert := func(calls string) {
		s.Exec(t, fmt.Sprintf("INSERT INTO %s.spans (start, day, service, name, kind, status, duration, calls, trace_id) "+
			"SELECT number * 7000000000, today(), if(number %% 3 = 0, 'a', 'b'), toString(number %% 5), 'server', "+
			"if(number %% 4 = 0, 'error', 'ok'), number * 1000, %s, reinterpretAsFixedString(toUInt128(number + 1)) FROM numbers(100)",
			database, calls))
	}
	groups := func(q tracestore.Query, by []tracestore.Field, parts int) *tracestore.Groups {
		t.Helper()
		a, err := store.Aggregate(t.Context(), q, tracestore.Aggregation{Groups: tracestore.GroupQuery{By: by, Limit: 20, Parts: parts}})
		if err != nil || !a.Complete() {
			t.Fatalf("%+v, %v", a, err)
		}
		for i := range a.Groups.Groups {
			g := &a.Groups.Groups[i]
			g.First, g.Last, g.Parts = 0, 0, nil
		}
		a.Groups.All.First, a.Groups.All.Last, a.Groups.All.Parts = 0, 0, nil
		if a.Spans != a.Groups.All.Durations.Count() || a.Errors != a.Groups.All.Errors {
			t.Errorf("%d spans, %d errors; all groups: %+v", a.Spans, a.Errors, a.Groups.All)
		}
		return a.Groups
	}
	service, name := tracestore.Field{Place: tracestore.Service}, tracestore.Field{Place: tracestore.Name}
	for _, calls := range []string{"1", "number % 2 + 1"} {
		insert(calls)
		for _, w := range [][2]uint64{{0, 10 * minute}, {minute, 4*minute - 1}, {minute - 1, 5*minute + 1}} {
			for _, by := range [][]tracestore.Field{{service, name}, {{Place: tracestore.Kind}}} {
				q := tracestore.Query{From: time.Unix(0, int64(w[0])), To: time.Unix(0, int64(w[1])),
					Where: tracestore.Not{Expr: tracestore.Cond{Field: name, Value: tracestore.Text("1")}}}
				// Parts are counted from spans.
				if got, want := groups(q, by, 0), groups(q, by, 1); !reflect.DeepEqual(got, want) {
					t.Errorf("calls %s, window %d, by %v:\n got %+v\nwant %+v", calls, w, by, got, want)
				}
			}
		}
	}
}
