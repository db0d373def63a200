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

// TestStopUnderLoad sends SIGTERM under load. Every acknowledged span is stored, every span is
// accounted for, and the last scrape agrees with the last log line.
func TestStopUnderLoad(t *testing.T) {
	p := harness.RunAllInOne(t, t.TempDir(), "extensions::admin::linger=2s")
	target := p.OTLPGRPC()
	admin := p.AdminURL()

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
	p.Signal(syscall.SIGTERM)
	accounting := p.Accounting()
	m := harness.CheckAccounting(t, admin) // the admin extension stops last
	cancel()
	result := <-done
	if code := p.Wait(); code != 0 {
		t.Errorf("exit code %d", code)
	}

	if result.Failures[codes.Unavailable] == 0 {
		t.Errorf("no request was refused; the load ended before the signal: %+v", result)
	}
	accepted := m[`tracing_pipeline_spans_total{component="otlp",kind="receiver",outcome="accepted",reason=""}`]
	stored := m[`tracing_pipeline_spans_total{component="disk",kind="exporter",outcome="sent",reason=""}`]
	if int(accepted) != result.Acked || stored != accepted {
		t.Errorf("%d spans were acknowledged, the receiver accepted %v, and %v were stored", result.Acked, accepted, stored)
	}
	logged := accounting["components"].([]any)
	if !slices.ContainsFunc(logged, func(c any) bool {
		m := c.(map[string]any)
		return m["component"] == "otlp" && m["accepted"] == accepted
	}) {
		t.Errorf("accounting %v, but /metrics has %v accepted spans", logged, accepted)
	}
	t.Logf("%d spans acknowledged, %d refused", result.Acked, result.Refused)
}
