package delivery_test

import (
	"context"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/tracing-backend/tracing/test/bench"
	"github.com/tracing-backend/tracing/test/bench/load"
	"github.com/tracing-backend/tracing/test/harness"
)

// A SIGTERM in the middle of the load: every acknowledged span was stored, nothing is unaccounted for, and both the last scrape and the
// last log line say so.
func TestStopUnderLoad(t *testing.T) {
	args := []string{"all-in-one", "--set", "extensions::admin::linger=2s", "--set", "service::data_dir=" + t.TempDir()}
	for _, s := range harness.FreePorts {
		args = append(args, "--set", s)
	}
	p := harness.Run(t, args...)
	target := p.Address("otlp", "protocols.grpc")
	admin := "http://" + p.Address("admin", "http")
	p.Await("msg", "Health Check state change", "status", "ready")

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	enough := make(chan struct{})
	var once sync.Once
	var acked int
	var mu sync.Mutex
	done := make(chan load.Result)
	go func() {
		r, _ := load.Run(ctx, load.Options{Target: target, Connections: 4, InFlight: 4, Acked: func(r bench.Request) {
			mu.Lock()
			defer mu.Unlock()
			if acked += r.Spans; acked > 20_000 {
				once.Do(func() { close(enough) })
			}
		}}, harness.Endless(bench.New(1, time.Now()).Requests(20_000, 512)))
		done <- r
	}()
	<-enough
	if err := p.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	accounting := p.Await("msg", "final accounting of spans")
	m := harness.Metrics(t, admin) // admin is the last to stop
	cancel()
	result := <-done
	if code := p.Wait(); code != 0 {
		t.Errorf("exit code %d", code)
	}

	if result.Failures[codes.Unavailable] == 0 {
		t.Errorf("no request was refused: the load had ended before the signal came: %+v", result)
	}
	harness.CheckAccounting(t, m)
	if accounting["balanced"] != true {
		t.Errorf("final log line: %v", accounting)
	}
	accepted := m[`tracing_pipeline_spans_total{component="otlp",kind="receiver",outcome="accepted",reason=""}`]
	stored := m[`tracing_pipeline_spans_total{component="disk",kind="exporter",outcome="sent",reason=""}`]
	if int(accepted) != result.Acked || stored != accepted {
		t.Errorf("clients hold acknowledgements for %d spans, the receiver accepted %v, %v were stored", result.Acked, accepted, stored)
	}
	logged := accounting["components"].([]any)
	if !slices.ContainsFunc(logged, func(c any) bool {
		m := c.(map[string]any)
		return m["component"] == "otlp" && m["accepted"] == accepted
	}) {
		t.Errorf("the log says %v, /metrics %v", logged, accepted)
	}
	t.Logf("%d spans acknowledged, %d refused", result.Acked, result.Refused)
}
