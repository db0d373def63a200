package canary

import (
	"context"
	"net/http"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Reader reads single spans through the query API, for other commands that write test spans.
type Reader struct {
	Query     string      // URL without /api and without a trailing slash
	Header    http.Header // for all requests, with canonical keys
	Transport http.RoundTripper
}

// ReadSpan is a span as the query API shows it.
type ReadSpan struct {
	Service, Operation string
	Tags               map[string]any // values are string, bool or json.Number
}

// Spans returns the spans of a trace, none if the trace is not found.
func (r Reader) Spans(ctx context.Context, id otlpdata.TraceID) ([]ReadSpan, error) {
	a := api{query: r.Query, header: r.Header, transport: r.Transport}
	traces, err := a.read(ctx, byID, &trace{id: id})
	if err != nil {
		return nil, err
	}
	var out []ReadSpan
	for _, t := range traces {
		for _, s := range t.Spans {
			span := ReadSpan{Service: t.Processes[s.ProcessID].Service, Operation: s.Operation, Tags: map[string]any{}}
			for _, tag := range s.Tags {
				span.Tags[tag.Key] = tag.Value
			}
			out = append(out, span)
		}
	}
	return out, nil
}
