package clickhouse_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/tracing-backend/tracing/exporters/clickhouse"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/pipelinetest"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/test/engines/clickhouse/engine"
)

// TestExporter runs the conformance suite for exporters. Its requests are older than the default
// retention.
func TestExporter(t *testing.T) {
	if testing.Short() {
		t.Skip("sends hundreds of small inserts; make test-engines runs it")
	}
	s := engine.Shared(t)
	pipelinetest.Exporter(t, clickhouse.Factory(), pipelinetest.ExporterOptions{
		Config: func(tb testing.TB, _ pipeline.Consumer) string {
			return fmt.Sprintf("{endpoints: [%q], protocol: http, database: %q, timeout: 2m, retention: {spans: 0s}}", s.HTTPAddr(), s.Database(tb))
		},
		Read: readStore,
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
