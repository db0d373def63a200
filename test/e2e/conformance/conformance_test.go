package conformance_test

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"github.com/tracing-backend/tracing"
	"github.com/tracing-backend/tracing/connectors/failover"
	forwardconnector "github.com/tracing-backend/tracing/connectors/forward"
	"github.com/tracing-backend/tracing/connectors/routing"
	"github.com/tracing-backend/tracing/exporters/debug"
	"github.com/tracing-backend/tracing/exporters/disk"
	loadbalancing "github.com/tracing-backend/tracing/exporters/load_balancing"
	"github.com/tracing-backend/tracing/exporters/memory"
	"github.com/tracing-backend/tracing/exporters/nop"
	otlpexporter "github.com/tracing-backend/tracing/exporters/otlp"
	"github.com/tracing-backend/tracing/exporters/otlphttp"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/pipelinetest"
	"github.com/tracing-backend/tracing/pipeline/sampling"
	"github.com/tracing-backend/tracing/pipeline/soak"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	adaptivesampling "github.com/tracing-backend/tracing/processors/adaptive_sampling"
	"github.com/tracing-backend/tracing/processors/batch"
	probabilisticsampler "github.com/tracing-backend/tracing/processors/probabilistic_sampler"
	"github.com/tracing-backend/tracing/receivers/otlp"
)

// TestConformance runs the conformance suite for every built-in receiver, processor, connector and
// exporter.
func TestConformance(t *testing.T) {
	tests := map[string]func(*testing.T){
		"receiver otlp": func(t *testing.T) {
			t.Run("grpc", otlpReceiverOverGRPC)
			t.Run("http", otlpReceiverOverHTTP)
		},
		"receiver native": func(t *testing.T) {
			t.Run("grpc", nativeReceiverOverGRPC)
			t.Run("http", nativeReceiverOverHTTP)
		},
		"receiver thriftudp":              thriftUDPReceiver,
		"receiver zipkin":                 zipkinReceiver,
		"receiver kafka":                  kafkaReceiver,
		"processor batch":                 batchProcessor,
		"processor resource_tags":         resourceTagsProcessor,
		"processor probabilistic_sampler": probabilisticSampler,
		"processor adaptive_sampling":     adaptiveSampling,
		"connector forward":               connector(forwardconnector.Factory(), ""),
		"connector routing":               connector(routing.Factory(), routes),
		"connector failover":              connector(failover.Factory(), "priority_levels: [[traces/next]]"),
		"exporter disk":                   diskExporter,
		"exporter clickhouse":             clickhouseExporter,
		"exporter memory":                 memoryExporter,
		"exporter native":                 nativeExporter,
		"exporter grpc":                   grpcExporter,
		"exporter otlp":                   otlpExporter,
		"exporter load_balancing":         loadBalancingExporter,
		"exporter otlphttp":               otlphttpExporter,
		"exporter zipkin":                 zipkinExporter,
		"exporter kafka":                  kafkaExporter,
		"exporter debug":                  debugExporter,
		"exporter nop":                    nopExporter,
	}
	for _, f := range tracing.Components() {
		if _, adapted := f.Defaults().(interface{ GivenTree() map[string]any }); adapted {
			continue // the tests of pipeline/otelcol run the suite for adapted components
		}
		name := f.Kind().String() + " " + f.Type()
		if f.Kind() != pipeline.KindExtension && tests[name] == nil {
			t.Errorf("%s is not tested; add it to this test", name)
		}
	}
	for name, test := range tests {
		t.Run(name, test)
	}
}

// probabilisticSampler uses the default configuration, which drops no spans.
func probabilisticSampler(t *testing.T) {
	pipelinetest.Processor(t, probabilisticsampler.Factory(), pipelinetest.ProcessorOptions{})
}

// routes divide each request and send all spans to the same pipeline.
const routes = `
default_pipelines: [traces/next]
table: [{context: span, condition: 'name != ""', pipelines: [traces/next]}]`

func connector(f pipeline.Factory, config string) func(*testing.T) {
	return func(t *testing.T) { pipelinetest.Connector(t, f, pipelinetest.ProcessorOptions{Config: config}) }
}

// adaptiveSampling uses an observer that discards what it is given.
func adaptiveSampling(t *testing.T) {
	build := func(_ pipeline.Settings, _ struct{}, next pipeline.Consumer) (*adaptivesampling.Processor, error) {
		return adaptivesampling.New(discard{}, next), nil
	}
	factory := pipeline.Processor("adaptive_sampling", func() struct{} { return struct{}{} }, build)
	pipelinetest.Processor(t, factory.Doc("Observes traces."), pipelinetest.ProcessorOptions{})
}

type discard struct{}

func (discard) Observe(string, []sampling.Root) {}

func otlpReceiverOverGRPC(t *testing.T) {
	pipelinetest.Receiver(t, otlp.Factory(), pipelinetest.ReceiverOptions{
		Config:         `protocols: {grpc: {endpoint: "localhost:0"}}`,
		Listener:       "grpc",
		PartialSuccess: true,
		Send: func(ctx context.Context, addr string, td ptrace.Traces) error {
			conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDisableRetry())
			if err != nil {
				return err
			}
			defer conn.Close()
			resp, err := ptraceotlp.NewGRPCClient(conn).Export(ctx, ptraceotlp.NewExportRequestFromTraces(td))
			return answered(resp, err)
		},
	})
}

func otlpReceiverOverHTTP(t *testing.T) {
	pipelinetest.Receiver(t, otlp.Factory(), pipelinetest.ReceiverOptions{
		Config:         `protocols: {http: {endpoint: "localhost:0"}}`,
		Listener:       "http",
		PartialSuccess: true,
		Send:           postOTLP,
	})
}

// postOTLP sends spans and interprets the response as the OTLP specification says.
func postOTLP(ctx context.Context, addr string, td ptrace.Traces) error {
	body, err := ptraceotlp.NewExportRequestFromTraces(td).MarshalProto()
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+addr+"/v1/traces", bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/x-protobuf")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if body, err = io.ReadAll(resp.Body); err != nil {
		return err
	}
	switch resp.StatusCode {
	case http.StatusOK:
		answer := ptraceotlp.NewExportResponse()
		return answered(answer, answer.UnmarshalProto(body))
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return errors.New(resp.Status)
	}
	return pipeline.Permanent(errors.New(resp.Status))
}

// answered returns the outcome of a request.
func answered(resp ptraceotlp.ExportResponse, err error) error {
	if err != nil {
		return err
	}
	if n := resp.PartialSuccess().RejectedSpans(); n > 0 {
		return &pipeline.Partial{Rejected: int(n), Err: errors.New(resp.PartialSuccess().ErrorMessage())}
	}
	return nil
}

func batchProcessor(t *testing.T) {
	for name, config := range map[string]string{
		"defaults":     "",
		"one at once":  "concurrency: 1",
		"with waiting": "{timeout: 5ms, send_batch_size: 7, send_batch_max_size: 9}",
	} {
		t.Run(name, func(t *testing.T) {
			pipelinetest.Processor(t, batch.Factory(), pipelinetest.ProcessorOptions{Config: config})
		})
	}
}

func memoryExporter(t *testing.T) {
	pipelinetest.Exporter(t, memory.Factory(), pipelinetest.ExporterOptions{
		Config: func(testing.TB, pipeline.Consumer) string { return "max_bytes: 64MiB" },
		Read:   readStore,
	})
}

func clickhouseExporter(t *testing.T) {
	t.Skip("needs a ClickHouse engine: TestExporter in test/engines/clickhouse runs the suite for it")
}

func diskExporter(t *testing.T) {
	pipelinetest.Exporter(t, disk.Factory(), pipelinetest.ExporterOptions{
		Config: func(testing.TB, pipeline.Consumer) string { return "{reserve: 1MiB, memtable: {max_bytes: 4MiB}}" },
		Read:   readStore,
	})
}

// readStore returns all spans in a store.
func readStore(exporter any) ([]*otlpdata.Batch, error) {
	var all []*otlpdata.Batch
	for _, tenant := range pipelinetest.Tenants() {
		found, err := exporter.(tracestore.Reader).Find(context.Background(), tracestore.Query{Tenant: tenant}, tracestore.WantFull)
		if err != nil {
			return nil, err
		}
		for r, err := range found.All {
			if err != nil {
				return nil, err
			}
			all = append(all, r.Spans)
		}
	}
	return all, nil
}

// startHop starts a next hop for OTLP over gRPC, and returns its address.
func startHop(tb testing.TB, next pipeline.Consumer) string {
	register := func(srv *grpc.Server) { ptraceotlp.RegisterGRPCServer(srv, &hop{next: next}) }
	return pipelinetest.StartHop(tb, "localhost:0", register).Addr
}

// hop passes spans that it receives over OTLP on to next.
type hop struct {
	ptraceotlp.UnimplementedGRPCServer
	next pipeline.Consumer
}

func (h *hop) Export(ctx context.Context, req ptraceotlp.ExportRequest) (ptraceotlp.ExportResponse, error) {
	resp, err := response(h.next.Consume(ctx, otlpdata.FromTraces(req.Traces(), otlpdata.Meta{Tenant: tenantOf(ctx)})))
	return resp, pipeline.GRPCStatus(err).Err()
}

// tenantOf returns the tenant of a call.
func tenantOf(ctx context.Context) string {
	md, _ := metadata.FromIncomingContext(ctx)
	return strings.Join(md.Get("x-tenant"), ",")
}

// response returns the OTLP response for an outcome, and the error if it is not a partial success.
func response(err error) (ptraceotlp.ExportResponse, error) {
	resp := ptraceotlp.NewExportResponse()
	if partial := (*pipeline.Partial)(nil); errors.As(err, &partial) {
		resp.PartialSuccess().SetRejectedSpans(int64(partial.Rejected))
		resp.PartialSuccess().SetErrorMessage(partial.Err.Error())
		return resp, nil
	}
	return resp, err
}

// patient is the timeout of exporters. The concurrent callers of the suite need longer than the
// default on a busy machine.
const patient = "timeout: 1m"

func otlpExporter(t *testing.T) {
	pipelinetest.Exporter(t, otlpexporter.Factory(), pipelinetest.ExporterOptions{
		Config: func(tb testing.TB, next pipeline.Consumer) string {
			return fmt.Sprintf("{endpoint: %q, tls: {insecure: true}, %s}", startHop(tb, next), patient)
		},
	})
}

// loadBalancingExporter sends each request to one of several backends: a request whose parts have
// different outcomes is not for this suite, because a retry continues with some of its parts.
func loadBalancingExporter(t *testing.T) {
	for name, backends := range map[string]int{"one backend": 1, "three backends": 3} {
		t.Run(name, func(t *testing.T) {
			pipelinetest.Exporter(t, loadbalancing.Factory(), pipelinetest.ExporterOptions{
				Config: func(tb testing.TB, next pipeline.Consumer) string {
					hops := make([]string, backends)
					for i := range hops {
						hops[i] = startHop(tb, next)
					}
					return fmt.Sprintf("{routing_key: service, resolver: {static: {hostnames: [%s]}}, protocol: {otlp: {tls: {insecure: true}}}, %s}",
						strings.Join(hops, ", "), patient)
				},
			})
		})
	}
}

func otlphttpExporter(t *testing.T) {
	for name, settings := range map[string]string{
		"none": "compression: none",
		"gzip": "compression: gzip",
		"json": "compression: none, encoding: json",
	} {
		t.Run(name, func(t *testing.T) {
			if name != "gzip" {
				soak.SkipIfRaced(t)
			}
			pipelinetest.Exporter(t, otlphttp.Factory(), pipelinetest.ExporterOptions{
				Config: func(tb testing.TB, next pipeline.Consumer) string {
					srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { hopOverHTTP(w, r, next) }))
					tb.Cleanup(srv.Close)
					return fmt.Sprintf("{endpoint: %q, %s, %s}", srv.URL, settings, patient)
				},
			})
		})
	}
}

// hopOverHTTP passes a request on to next and answers with the outcome.
func hopOverHTTP(w http.ResponseWriter, r *http.Request, next pipeline.Consumer) {
	body := io.Reader(r.Body)
	var err error
	if r.Header.Get("Content-Encoding") == "gzip" {
		body, err = gzip.NewReader(r.Body)
	}
	var request []byte
	if err == nil {
		request, err = io.ReadAll(body)
	}
	var b *otlpdata.Batch
	if err == nil {
		meta, from := otlpdata.Meta{Tenant: r.Header.Get("X-Tenant")}, otlpdata.FromOTLP
		if r.Header.Get("Content-Type") == "application/json" {
			from = otlpdata.FromJSON
		}
		b, err = from(request, meta, otlpdata.Limits{})
	}
	resp := ptraceotlp.NewExportResponse()
	if err == nil {
		resp, err = response(next.Consume(r.Context(), b))
	}
	answer, marshalErr := resp.MarshalProto()
	err = cmp.Or(err, marshalErr)
	code, after := pipeline.HTTPStatus(err)
	if after > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(after.Seconds())))
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
	w.WriteHeader(code)
	w.Write(answer) //nolint:errcheck // the client is gone
}

func debugExporter(t *testing.T) {
	for _, verbosity := range []string{"basic", "normal", "detailed"} {
		t.Run(verbosity, func(t *testing.T) {
			if verbosity != "detailed" {
				soak.SkipIfRaced(t)
			}
			pipelinetest.Exporter(t, debug.Factory(), pipelinetest.ExporterOptions{
				Config:   func(testing.TB, pipeline.Consumer) string { return "verbosity: " + verbosity },
				Discards: true,
			})
		})
	}
}

func nopExporter(t *testing.T) {
	pipelinetest.Exporter(t, nop.Factory(), pipelinetest.ExporterOptions{
		Config:   func(testing.TB, pipeline.Consumer) string { return "" },
		Discards: true,
	})
}
