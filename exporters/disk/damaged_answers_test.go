package disk

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/internal/traceql"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/soak"
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
				complete := answer.Complete
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
			return a, a.Complete, err
		}},
		question{"paths", func(ctx context.Context, e *exporter) (any, bool, error) {
			p, err := e.ProfilePaths(ctx, day, *first, tracestore.PathOptions{})
			complete := p.Complete
			p.Scanned = 0
			return p, complete, err
		}},
		question{"calls", func(ctx context.Context, e *exporter) (any, bool, error) {
			g, err := e.Dependencies(ctx, "", startOf(1), startOf(40))
			return g, g.Complete, err
		}},
		question{"peers", func(ctx context.Context, e *exporter) (any, bool, error) {
			g, err := e.Peers(ctx, "", startOf(1), startOf(40))
			return g, g.Complete, err
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
		return ids, found.Outcome().Complete, nil
	}}
}

// answers asks all questions. An answer that is not complete is "".
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
// of, while the store runs. No query of any kind panics or fails, and an answer is that of the
// sound store or says that it is not complete.
func TestAnswersFromDamagedSegments(t *testing.T) {
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
