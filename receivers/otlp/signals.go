package otlp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	_ "go.opentelemetry.io/proto/otlp/collector/logs/v1"    // descriptor for reflection
	_ "go.opentelemetry.io/proto/otlp/collector/metrics/v1" // descriptor for reflection
	"google.golang.org/grpc"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/server"
)

// signal is an OTLP signal. SDKs and agents send all signals to one endpoint by default. The
// response to requests that no pipeline takes is a partial success that rejects all items and says
// why, because many clients do not show the body of an error.
type signal struct {
	kind     otlpdata.Signal // of batches; no pipeline takes metrics
	name     string          // value of the label signal
	service  string
	file     string // .proto file of the service
	items    string
	variable string // environment variable of SDKs that turns the signal off
	endpoint string // environment variable of SDKs with the endpoint of the signal

	count     func(request []byte) (int, error)
	jsonItems string // name of the JSON lists of items
	rejected  string // name of the number of rejected items in a JSON response
}

const (
	metricsPath = "/v1/metrics"
	traceFile   = "opentelemetry/proto/collector/trace/v1/trace_service.proto"
)

var (
	tracesSignal = &signal{
		name: otlpdata.SignalTraces.String(), service: traceService, file: traceFile, items: otlpdata.SignalTraces.Items(),
		variable: "OTEL_TRACES_EXPORTER=none", endpoint: "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
		count: otlpdata.CountSpans, jsonItems: "spans", rejected: "rejectedSpans",
	}
	metricsSignal = &signal{
		name: "metrics", service: collectorPrefix[1:] + "metrics.v1.MetricsService",
		file: "opentelemetry/proto/collector/metrics/v1/metrics_service.proto", items: "data points",
		variable: "OTEL_METRICS_EXPORTER=none", endpoint: "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
		count: otlpdata.CountDataPoints, jsonItems: "dataPoints", rejected: "rejectedDataPoints",
	}
	logsSignal = &signal{
		kind: otlpdata.SignalLogs, name: otlpdata.SignalLogs.String(), service: collectorPrefix[1:] + "logs.v1.LogsService",
		file: "opentelemetry/proto/collector/logs/v1/logs_service.proto", items: otlpdata.SignalLogs.Items(),
		variable: "OTEL_LOGS_EXPORTER=none", endpoint: "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT",
		count: otlpdata.CountLogRecords, jsonItems: "logRecords", rejected: "rejectedLogRecords",
	}
)

// takes reports whether a pipeline takes the signal now.
func (r *receiver) takes(s *signal) bool {
	return s != metricsSignal && pipeline.Takes(r.next, s.kind)
}

// newRejectedCounter returns the counter of rejected items.
func newRejectedCounter() *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "tracing_otlp_rejected_items_total",
		Help: "Data points of metrics, log records and spans that were discarded, because no pipeline of the receiver takes them, by signal.",
	}, []string{"signal"})
	for _, s := range []*signal{metricsSignal, logsSignal} {
		c.WithLabelValues(s.name)
	}
	return c
}

// reject counts the items of a request and returns the message of the partial success, "" if there
// are no items.
func (r *receiver) reject(s *signal, items int) (message string) {
	r.rejected.WithLabelValues(s.name).Add(float64(items))
	if items == 0 {
		return ""
	}
	taken := "traces and logs"
	switch {
	case !r.takes(logsSignal):
		taken = "traces only"
	case !r.takes(tracesSignal):
		taken = "logs only"
	}
	return fmt.Sprintf("this server accepts %s and discarded %d %s; set %s, or send %s to another server with %s",
		taken, items, s.items, s.variable, s.name, s.endpoint)
}

// other handles requests with a signal that no pipeline takes.
func (s *httpServer) other(w http.ResponseWriter, r *http.Request, enc *encoding, signal *signal) {
	body, err := server.ReadBody(r)
	if err != nil {
		fail(w, enc, err) // counted by the server
		return
	}
	items, err := s.count(signal, enc, body)
	if err != nil {
		s.listener.CountRefused(server.ReasonOf(err))
		fail(w, enc, err)
		return
	}
	response, err := signal.response(enc, items, s.receiver.reject(signal, items))
	if err != nil {
		fail(w, enc, fmt.Errorf("encoding response: %w", err))
		return
	}
	write(w, enc.mediaType, http.StatusOK, response)
}

// count returns the number of items in a request.
func (s *httpServer) count(signal *signal, enc *encoding, body []byte) (items int, err error) {
	count := signal.count
	if enc == &jsonEncoding {
		// A token is in memory as text and, while the buffer grows, twice as bytes.
		memory, err := s.receiver.reserve("bytes of memory to read the JSON", 3*int64(len(body)))
		if err != nil {
			return 0, err
		}
		defer memory.Release()
		count = func(body []byte) (int, error) { return signal.countJSON(body, s.receiver.limits.Depth) }
	}
	if items, err = count(body); err != nil {
		return 0, pipeline.Permanent(err)
	}
	return items, nil
}

// response returns a success, a partial one if items were rejected or there is a message. In
// protobuf, the responses of all signals have the same fields.
func (s *signal) response(enc *encoding, rejected int, message string) ([]byte, error) {
	if enc != &jsonEncoding {
		return partialSuccess(rejected, message).MarshalProto()
	}
	if s == tracesSignal {
		return partialSuccess(rejected, message).MarshalJSON()
	}
	partial := map[string]string{}
	if rejected > 0 {
		partial[s.rejected] = strconv.Itoa(rejected) // 64-bit numbers are text in JSON
	}
	if message != "" {
		partial["errorMessage"] = message
	}
	return json.Marshal(map[string]any{"partialSuccess": partial})
}

func partialSuccess(items int, message string) ptraceotlp.ExportResponse {
	resp := ptraceotlp.NewExportResponse()
	resp.PartialSuccess().SetRejectedSpans(int64(items))
	resp.PartialSuccess().SetErrorMessage(message)
	return resp
}

// countJSON returns the number of items in a request in JSON whose attribute values are nested no
// deeper than depth. It holds one token in memory, which can be as large as the body, and a few
// bytes for each open bracket; the number of open brackets is limited.
func (s *signal) countJSON(body []byte, depth int) (items int, err error) {
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	if items, err = s.countTokens(dec, depth); err != nil {
		return 0, fmt.Errorf("otlp: JSON: %w", err)
	}
	return items, nil
}

// countTokens reads one JSON object and nothing after it.
func (s *signal) countTokens(dec *json.Decoder, depth int) (items int, err error) {
	var (
		open    []bool // for each open bracket, whether it is a list of items
		counted bool   // whether the next value is a list of items
		limit   = otlpdata.MaxJSONBrackets(depth)
	)
	for first := true; ; first = false {
		token, err := dec.Token()
		switch {
		case err != nil:
			return 0, unexpectedEOF(err)
		case first && token != json.Delim('{'):
			return 0, errors.New("request is not an object")
		}
		inItems := len(open) > 0 && open[len(open)-1]
		switch token {
		case json.Delim('['), json.Delim('{'):
			if inItems {
				items++
			}
			if len(open) == limit {
				return 0, fmt.Errorf("more than %d open brackets; max_nesting_depth limits them", limit)
			}
			open = append(open, counted && token == json.Delim('['))
		case json.Delim(']'), json.Delim('}'):
			open = open[:len(open)-1]
		}
		counted = token == s.jsonItems
		if len(open) == 0 {
			break
		}
	}
	if _, err := dec.Token(); err != io.EOF {
		return 0, errors.New("trailing data after the request")
	}
	return items, nil
}

func unexpectedEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// register adds the services of all signals.
func (s *grpcServer) register() {
	for _, signal := range []*signal{tracesSignal, metricsSignal, logsSignal} {
		export := func(srv any, ctx context.Context, dec func(any) error, in grpc.UnaryServerInterceptor) (any, error) {
			var req server.Raw
			if err := dec(&req); err != nil {
				return nil, err
			}
			return in(ctx, &req, &grpc.UnaryServerInfo{Server: srv, FullMethod: "/" + signal.service + "/Export"},
				func(ctx context.Context, req any) (any, error) { return s.export(ctx, signal, *req.(*server.Raw)) })
		}
		s.listener.RegisterService(&grpc.ServiceDesc{
			ServiceName: signal.service,
			HandlerType: (*any)(nil),
			Methods:     []grpc.MethodDesc{{MethodName: "Export", Handler: export}},
			Metadata:    signal.file,
		}, s)
	}
}

func (s *grpcServer) reject(signal *signal, request []byte) (any, error) {
	items, err := signal.count(request)
	if err != nil {
		s.listener.CountRefused(server.ReasonUndecodable)
		return nil, pipeline.GRPCStatus(pipeline.Permanent(err)).Err()
	}
	raw, err := partialSuccess(items, s.receiver.reject(signal, items)).MarshalProto()
	return (*server.Raw)(&raw), err
}
