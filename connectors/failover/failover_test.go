package failover

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// branches are the fake pipelines behind a connector.
type branches struct {
	refuse map[string]error // by pipeline
	got    map[string]int   // batches
}

func (b *branches) Consume(context.Context, *otlpdata.Batch) error { return errors.New("not to all") }

func (b *branches) Only(ids ...pipeline.PipelineID) pipeline.Consumer {
	return only{b, ids[0].Name}
}

type only struct {
	*branches
	name string
}

func (o only) Consume(ctx context.Context, _ *otlpdata.Batch) error {
	err := o.refuse[o.name]
	if errors.Is(err, context.DeadlineExceeded) { // the pipeline hangs
		<-ctx.Done()
	}
	if err == nil {
		o.got[o.name]++
	}
	return err
}

func TestFailover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		next := &branches{map[string]error{}, map[string]int{}}
		level := func(name string) []pipeline.PipelineID {
			return []pipeline.PipelineID{{ID: pipeline.ID{Type: "traces", Name: name}}}
		}
		c := config{PriorityLevels: [][]pipeline.PipelineID{level("a"), level("b"), level("c")}, RetryInterval: pipeline.Duration(time.Minute)}
		var reported error
		set := pipeline.Settings{Logger: zap.NewNop(), Env: pipeline.SystemEnv(), Report: func(err error) { reported = err }}
		built, err := Factory().Build(set, &c, next)
		if err != nil {
			t.Fatal(err)
		}
		consume := func(want string) {
			t.Helper()
			before := next.got[want]
			ctx, cancel := context.WithTimeout(t.Context(), 9*time.Second)
			defer cancel()
			err := built.(pipeline.Consumer).Consume(ctx, otlpdata.FromTraces(ptrace.NewTraces(), otlpdata.Meta{}))
			if (err == nil) != (want != "") || want != "" && next.got[want] != before+1 {
				t.Fatalf("want %q, got %v, %v", want, next.got, err)
			}
		}
		consume("a")
		next.refuse["a"] = errors.New("down")
		consume("b")
		if reported == nil {
			t.Error("not reported")
		}
		next.refuse["a"] = nil
		consume("b") // not tried before the interval ends
		time.Sleep(time.Minute)
		consume("a")
		if reported != nil {
			t.Errorf("still reported: %v", reported)
		}
		next.refuse["a"], next.refuse["b"] = context.DeadlineExceeded, pipeline.Permanent(errors.New("no"))
		consume("c") // the level that hangs leaves time for the others
		next.refuse["c"] = errors.New("down")
		consume("")
		next.refuse["a"], next.refuse["b"], next.refuse["c"] = nil, nil, nil
		consume("a") // after the last level, the first one
	})
}

func TestValidate(t *testing.T) {
	for _, c := range []config{{RetryInterval: 1}, {PriorityLevels: [][]pipeline.PipelineID{{}}, RetryInterval: 1},
		{PriorityLevels: [][]pipeline.PipelineID{{{}}}}} {
		if c.Validate() == nil {
			t.Errorf("%+v is valid", c)
		}
	}
}
