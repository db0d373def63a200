package delivery_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	collogs "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	logs "go.opentelemetry.io/proto/otlp/logs/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/tracing-backend/tracing/pipeline/pipelinetest"
	"github.com/tracing-backend/tracing/pipeline/soak"
	"github.com/tracing-backend/tracing/test/harness"
)

// logAgent passes spans and log records on from queues on disk.
const logAgent = `
receivers: {otlp: {protocols: {grpc: {endpoint: "localhost:0"}}}}
processors: {batch: }
exporters:
  otlp:
    endpoint: %q
    tls: {insecure: true}
    retry_on_failure: {initial_interval: 50ms, max_interval: 500ms, max_elapsed_time: 0s}
    sending_queue: {storage: disk, queue_size: 0}
extensions: {admin: {endpoint: "localhost:0"}}
service:
  data_dir: %q
  extensions: [admin]
  pipelines:
    traces: {receivers: [otlp], processors: [batch], exporters: [otlp]}
    logs: {receivers: [otlp], processors: [batch], exporters: [otlp]}
`

// logHop is a system for logs that counts each record. While it is down it refuses all requests.
type logHop struct {
	collogs.UnimplementedLogsServiceServer
	addr string

	mu   sync.Mutex
	down bool
	got  map[string]int // by body
}

func startLogHop(t *testing.T) *logHop {
	t.Helper()
	h := &logHop{got: map[string]int{}}
	h.addr = pipelinetest.StartHop(t, "localhost:0", func(srv *grpc.Server) { collogs.RegisterLogsServiceServer(srv, h) }).Addr
	return h
}

func (h *logHop) Export(_ context.Context, req *collogs.ExportLogsServiceRequest) (*collogs.ExportLogsServiceResponse, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.down {
		return nil, status.Error(codes.Unavailable, "down")
	}
	for _, rl := range req.GetResourceLogs() {
		for _, sl := range rl.GetScopeLogs() {
			for _, r := range sl.GetLogRecords() {
				h.got[r.GetBody().GetStringValue()]++
			}
		}
	}
	return &collogs.ExportLogsServiceResponse{}, nil
}

func (h *logHop) setDown(down bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.down = down
}

// missing returns how many of the bodies have not arrived.
func (h *logHop) missing(bodies map[string]bool) (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for body := range bodies {
		if h.got[body] == 0 {
			n++
		}
	}
	return n
}

// sendLogs sends log records from several senders until ctx ends. It adds the bodies that it sends
// to sent, and whether each was acknowledged, and calls first after the first acknowledgement.
func sendLogs(ctx context.Context, t *testing.T, target string, round int, sent map[string]bool, first func()) {
	t.Helper()
	conn, err := grpc.NewClient(target, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	client := collogs.NewLogsServiceClient(conn)
	var mu sync.Mutex
	record := func(bodies []string, acked bool) {
		mu.Lock()
		defer mu.Unlock()
		for _, body := range bodies {
			sent[body] = acked
		}
	}
	var senders sync.WaitGroup
	for s := range 4 {
		senders.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				var bodies []string
				var records []*logs.LogRecord
				for i := range 1 + n%5 {
					body := fmt.Sprintf("record %d of request %d of sender %d in round %d", i, n, s, round)
					bodies = append(bodies, body)
					records = append(records, &logs.LogRecord{Body: &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: body}}})
				}
				record(bodies, false)
				answer, err := client.Export(ctx, &collogs.ExportLogsServiceRequest{
					ResourceLogs: []*logs.ResourceLogs{{ScopeLogs: []*logs.ScopeLogs{{LogRecords: records}}}}})
				if err != nil {
					return // killed
				}
				if p := answer.GetPartialSuccess(); p.GetRejectedLogRecords() > 0 {
					t.Errorf("%v", p)
				}
				record(bodies, true)
				first()
			}
		})
	}
	senders.Wait()
}

// TestKillWithLogs kills an agent that has queued log records on disk because the next hop is down.
// After a restart, each acknowledged record arrives exactly once. A record that was not
// acknowledged may arrive once, also in a later round.
func TestKillWithLogs(t *testing.T) {
	rounds, seed := soak.Rounds(t, 4, 1), soak.Seed(t)
	rnd := rand.New(rand.NewPCG(seed, 0))
	hop, dir, sent := startLogHop(t), t.TempDir(), map[string]bool{}
	for round := range rounds {
		hop.setDown(true)
		agent := harness.RunYAML(t, fmt.Sprintf(logAgent, hop.addr, dir))
		agent.AwaitReady()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		wait := time.Duration(rnd.IntN(400)) * time.Millisecond // the time of the kill is random
		sendLogs(ctx, t, agent.OTLPGRPC(), round, sent, sync.OnceFunc(func() {
			time.AfterFunc(wait, func() {
				agent.Kill()
				cancel()
			})
		}))
		cancel()
		acked := map[string]bool{}
		for body, ok := range sent {
			if ok {
				acked[body] = true
			}
		}

		hop.setDown(false)
		agent = harness.RunYAML(t, fmt.Sprintf(logAgent, hop.addr, dir))
		agent.AwaitReady()
		harness.Poll(t, "acknowledged records arrive", func() bool { return hop.missing(acked) == 0 })
		if code := agent.Terminate(); code != 0 {
			t.Errorf("exit code %d", code)
		}
		hop.mu.Lock()
		for body, n := range hop.got {
			if _, ok := sent[body]; !ok || n != 1 {
				t.Errorf("%q arrived %d times; sent: %v", body, n, ok)
			}
		}
		t.Logf("up to round %d: %d records acknowledged, %d arrived", round, len(acked), len(hop.got))
		hop.mu.Unlock()
		if t.Failed() {
			t.Fatalf("round %d failed with TRACING_SEED=%d", round, seed)
		}
	}
}
