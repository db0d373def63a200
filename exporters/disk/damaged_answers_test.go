package disk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/tracing-backend/tracing/internal/traceql"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/soak"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs/vfstest"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// question is a query whose answer says whether it is complete.
type question struct {
	name string
	ask  func(ctx context.Context, e *exporter) (answer any, complete bool, err error)
}

// questions returns queries of all kinds that read rows of blocks.
func questions(t testing.TB) (list []question) {
	day := tracestore.Query{From: shuffledDay.Add(-time.Hour), To: shuffledDay.Add(time.Hour)}
	slow := tracestore.Cond{Field: tracestore.Field{Place: tracestore.Duration}, Op: tracestore.Gt, Value: tracestore.Number(10)}
	first := &tracestore.Selection{From: day.From, To: startOf(25), Where: tracestore.Not{Expr: slow}}
	fields := []tracestore.Field{{Place: tracestore.Service}, {Place: tracestore.Name}}
	for i, a := range []tracestore.Aggregation{
		{Groups: tracestore.GroupQuery{By: fields, Limit: 10}},
		{Heatmap: tracestore.HeatmapQuery{Step: time.Minute}},
		{Facets: tracestore.FacetQuery{Values: 10, Selection: first}},
		{Exemplars: 10},
	} {
		name := []string{"groups", "heatmap", "compare", "exemplars"}[i]
		for _, where := range []tracestore.Expr{nil, slow, tracestore.Or{slow, tracestore.Not{Expr: slow}}} {
			list = append(list, question{fmt.Sprintf("%s where %v", name, where), func(ctx context.Context, e *exporter) (any, bool, error) {
				q := day
				q.Where = where
				answer, err := e.Aggregate(ctx, q, a)
				complete := answer.Complete()
				answer.Scanned = 0 // a store may count from statistics what it cannot read
				return answer, complete, err
			}})
		}
	}
	for _, text := range []string{
		`{ } >> { duration > 1ns }`, `{ name = "read" } && { duration > 1ns }`, `{ duration > 1ns || duration < 1h }`,
		`{ } | select(duration)`, `{ traceDuration > 1ns && duration > 1ns }`,
	} {
		list = append(list, searchFor(t, text))
	}
	return append(list,
		question{"metrics", func(ctx context.Context, e *exporter) (any, bool, error) {
			a, err := e.Metrics(ctx, "", tracestore.MetricsQuery{ByOperation: true, From: startOf(1), To: startOf(40)})
			return a, a.Complete(), err
		}},
		question{"paths", func(ctx context.Context, e *exporter) (any, bool, error) {
			p, err := e.ProfilePaths(ctx, day, *first, tracestore.PathOptions{})
			complete := p.Complete()
			p.Scanned = 0
			return p, complete, err
		}},
		question{"calls", func(ctx context.Context, e *exporter) (any, bool, error) {
			g, err := e.Dependencies(ctx, "", startOf(1), startOf(40))
			return g, g.Complete(), err
		}},
		question{"peers", func(ctx context.Context, e *exporter) (any, bool, error) {
			g, err := e.Peers(ctx, "", startOf(1), startOf(40))
			return g, g.Complete(), err
		}},
	)
}

func searchFor(t testing.TB, text string) question {
	query, err := traceql.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return question{text, func(ctx context.Context, e *exporter) (any, bool, error) {
		search := storequery.NewSearch(e, query.Set, tracestore.WantSummaries)
		defer search.Close()
		found, err := search.Find(ctx, tracestore.Query{})
		if err != nil {
			return nil, false, err
		}
		var ids []otlpdata.TraceID
		for r, err := range found.All {
			if err != nil {
				return nil, false, err
			}
			ids = append(ids, r.ID)
		}
		return ids, found.Outcome().Complete(), nil
	}}
}

// answers asks all questions. A result that is not complete is "".
func answers(t testing.TB, e *exporter, list []question) (all []string, err error) {
	for _, q := range list {
		answer, complete, err := q.ask(t.Context(), e)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", q.name, err)
		}
		text := ""
		if complete {
			b, err := json.Marshal(answer)
			if err != nil {
				t.Fatal(err)
			}
			text = string(b)
		}
		all = append(all, text)
	}
	return all, nil
}

// TestAnswersFromDamagedSegments damages the bytes of segments that pending deletions hide a part
// of, while the store runs. No query of any kind panics or fails, and each result equals the result
// of the undamaged store or is marked as incomplete.
func TestAnswersFromDamagedSegments(t *testing.T) {
	soak.SkipIfRaced(t)
	v, list := newVictim(t), questions(t)
	mem := v.disk(t, "", nil)
	v.setup.fs, v.setup.config.Reserve = mem, 0
	e := v.setup.build(t)
	if err := e.openFolder(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		e.closeAll()
		if err := e.dir.Close(); err != nil {
			t.Error(err)
		}
	}()
	want, err := answers(t, e, list)
	if err != nil || slices.Contains(want, "") {
		t.Fatalf("without damage: %v, %q", err, want)
	}
	stride := max(1, 131/soak.Rounds(t, 20, 1))
	tested, partial := 0, 0
	for _, h := range e.handles() {
		name := e.dir.Path(h.name)
		for at := int64(0); at < h.info.Size; at += int64(stride) {
			flipBit(t, mem, name, at)
			got, err := answers(t, e, list)
			if err != nil {
				t.Fatalf("%s, byte %d: %v", path.Base(name), at, err)
			}
			for i := range got {
				if got[i] == "" {
					partial++
				} else if got[i] != want[i] {
					t.Errorf("%s, byte %d: %s: got %.300s, want %.300s", path.Base(name), at, list[i].name, got[i], want[i])
				}
			}
			flipBit(t, mem, name, at)
			tested++
		}
	}
	if partial == 0 {
		t.Error("all answers are complete")
	}
	t.Logf("%d damaged bytes, %d queries each, %d answers were partial", tested, len(list), partial)
}

// TestAnswersAfterLosses: while the quarantine has a segment or a note about a lost log, all
// answers say that spans are missing, and the loss is counted. When the operator deletes the file,
// or its spans would have expired, they are complete.
func TestAnswersAfterLosses(t *testing.T) {
	v, list := newVictim(t), questions(t)
	first := func(suffix string) string {
		return v.files[slices.IndexFunc(v.files, func(name string) bool { return strings.HasSuffix(name, suffix) })]
	}
	for what, c := range map[string]struct {
		name    string
		content []byte
	}{
		"segment without footer": {first(".seg"), v.content[first(".seg")][:500]},
		"missing segment":        {first(".seg"), nil},
		"missing log":            {first(".log"), nil},
		"cut log":                {first(".log"), v.content[first(".log")][:600]},
	} {
		t.Run(what, func(t *testing.T) {
			s := *v.setup
			s.clock = newClock()
			mem := v.disk(t, c.name, c.content)
			s.fs, s.config.Retention.Time = mem, pipeline.Duration(1000*time.Hour)
			e := s.open(t)
			complete := func() (n int) {
				got, err := answers(t, e, list)
				if err != nil {
					t.Fatal(err)
				}
				return len(list) - len(slices.DeleteFunc(got, func(text string) bool { return text != "" }))
			}
			if n := complete(); n > 0 {
				t.Errorf("%d answers are complete", n)
			}
			var err error
			for _, err = range e.Traces(t.Context(), "", refOf(1000)) {
			}
			if d := (*tracestore.DamagedError)(nil); !errors.As(err, &d) {
				t.Errorf("a trace that is not found: %v, want what is missing", err)
			}
			if _, _, err := e.Services(t.Context(), "", tracestore.NameQuery{}); err == nil {
				t.Error("the list of services is complete")
			}
			if _, err := e.AttributeKeys(t.Context(), "", "", 0); err == nil {
				t.Error("the list of attribute keys is complete")
			}
			if _, err := e.AttributeValues(t.Context(), "", "n", "", 0); err == nil {
				t.Error("the list of attribute values is complete")
			}
			if _, err := e.TraceVersion(t.Context(), "", refOf(20)[0].ID); err != nil {
				t.Errorf("version of a trace: %v", err)
			}
			m := e.metrics
			if testutil.ToFloat64(m.quarantined)+testutil.ToFloat64(m.lostSpans)+testutil.ToFloat64(m.lostRecords) == 0 {
				t.Error("the metrics count no loss")
			}
			s.clock.advance(1002 * time.Hour)
			if e.health.damageError() == nil || e.health.lossReason() != "" {
				t.Errorf("after the retention time %q is missing", e.health.lossReason())
			}
			s.clock.advance(-1002 * time.Hour)
			files, err := e.dir.Quarantined()
			for _, f := range files {
				err = errors.Join(err, mem.Remove(e.dir.QuarantineDir()+"/"+f.Name))
			}
			if err = errors.Join(err, e.health.damageError()); err != nil {
				t.Fatal(err)
			}
			if n := complete(); n < len(list) {
				t.Errorf("%d of %d answers are complete after the files were deleted", n, len(list))
			}
		})
	}
}

// TestLossOfNewLog: a log that is gone before its size was recorded counts as one lost request.
func TestLossOfNewLog(t *testing.T) {
	mem := vfstest.NewMem()
	s := newSetup(mem)
	e := s.start(t)
	newNumbers().send(t, e, 10)
	mem = mem.Kill()
	e.Stop(t.Context()) //nolint:errcheck // its disk has crashed
	for _, name := range filesBelow(t, mem, folder+"/log") {
		if strings.HasSuffix(name, ".log") {
			if err := mem.Remove(name); err != nil {
				t.Fatal(err)
			}
		}
	}
	s.fs = mem
	if n := testutil.ToFloat64(s.open(t).metrics.lostRecords); n < 1 {
		t.Errorf("%v lost log records are counted, want at least 1", n)
	}
}
