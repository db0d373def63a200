package conformance_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/apache/thrift/lib/go/thrift"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"math"

	nativeexporter "github.com/tracing-backend/tracing/exporters/native"
	translate "github.com/tracing-backend/tracing/internal/translate/native"
	wirenames "github.com/tracing-backend/tracing/internal/wire"
	"github.com/tracing-backend/tracing/internal/wire/api_v2"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/pipelinetest"
	resourcetags "github.com/tracing-backend/tracing/processors/resource_tags"
	"github.com/tracing-backend/tracing/receivers/native"
	"google.golang.org/protobuf/proto"
)

func nativeReceiverOverGRPC(t *testing.T) {
	pipelinetest.Receiver(t, native.Factory(), pipelinetest.ReceiverOptions{
		Config:    `protocols: {grpc: {endpoint: "localhost:0"}}`,
		Listener:  "grpc",
		Normalize: nativeContent,
		Send: func(ctx context.Context, addr string, td ptrace.Traces) error {
			conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDisableRetry())
			if err != nil {
				return err
			}
			defer conn.Close()
			req := &api_v2.PostSpansRequest{}
			err = translate.SplitPostSpans(otlpdata.FromTraces(td, otlpdata.Meta{}), math.MaxInt, func() []byte { return nil },
				func(request []byte, _ int) error { return proto.Unmarshal(request, req) })
			if err != nil {
				return err
			}
			_, err = api_v2.NewCollectorServiceClient(conn).PostSpans(ctx, req)
			return err
		},
	})
}

func nativeReceiverOverHTTP(t *testing.T) {
	pipelinetest.Receiver(t, native.Factory(), pipelinetest.ReceiverOptions{
		Config:    `protocols: {http: {endpoint: "localhost:0"}}`,
		Listener:  "http",
		Normalize: thriftContent,
		Send:      postThrift,
	})
}

// postThrift sends spans in the way of clients without an agent.
func postThrift(ctx context.Context, addr string, td ptrace.Traces) error {
	body := thrift.NewTMemoryBuffer()
	if err := jaegerBatch(td).Write(ctx, thrift.NewTBinaryProtocolConf(body, nil)); err != nil {
		return err
	}
	return post(ctx, "http://"+addr+"/api/traces", "application/x-thrift", body.Bytes())
}

// post sends a request that is answered with 202, and returns the error that a client reports for
// another answer.
func post(ctx context.Context, url, contentType string, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", contentType)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
		return err
	case resp.StatusCode == http.StatusAccepted:
		return nil
	case resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode == http.StatusServiceUnavailable:
		return errors.New(string(text))
	}
	return pipeline.Permanent(errors.New(string(text)))
}

// nativeHop passes spans that it receives in the native format on to next.
type nativeHop struct {
	api_v2.UnimplementedCollectorServiceServer
	next pipeline.Consumer
}

func (h *nativeHop) PostSpans(ctx context.Context, req *api_v2.PostSpansRequest) (*api_v2.PostSpansResponse, error) {
	request, err := proto.Marshal(req)
	if err != nil {
		return nil, err
	}
	otlp, err := translate.FromPostSpans(request, math.MaxInt)
	if err != nil {
		return nil, err
	}
	b, err := otlpdata.FromOTLP(otlp, otlpdata.Meta{Tenant: tenantOf(ctx)}, otlpdata.Limits{})
	if err == nil {
		err = h.next.Consume(ctx, b)
	}
	return &api_v2.PostSpansResponse{}, pipeline.GRPCStatus(err).Err()
}

func nativeExporter(t *testing.T) {
	pipelinetest.Exporter(t, nativeexporter.Factory(), pipelinetest.ExporterOptions{
		NoPartialSuccess: true,
		Normalize:        nativeContent,
		Config: func(tb testing.TB, next pipeline.Consumer) string {
			register := func(srv *grpc.Server) {
				wirenames.Register(srv, &api_v2.CollectorService_ServiceDesc, &nativeHop{next: next})
			}
			return fmt.Sprintf("{endpoint: %q, tls: {insecure: true}, %s}", pipelinetest.StartHop(tb, "localhost:0", register).Addr, patient)
		},
	})
}

func resourceTagsProcessor(t *testing.T) {
	pipelinetest.Processor(t, resourcetags.Factory(), pipelinetest.ProcessorOptions{
		Config: "tags: {env: test, region: eu}",
		Expect: func(spans ptrace.Traces) {
			for _, rs := range spans.ResourceSpans().All() {
				rs.Resource().Attributes().PutStr("env", "test")
				rs.Resource().Attributes().PutStr("region", "eu")
			}
		},
	})
}
