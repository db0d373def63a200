package clickhouse

import (
	"context"
	"fmt"
	"strings"

	"github.com/tracing-backend/tracing/exporters/clickhouse/internal/where"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

var _ tracestore.Metrics = (*exporter)(nil)

// Baselines implements tracestore.Metrics.
func (e *exporter) Baselines(ctx context.Context, tenant string, q tracestore.BaselineQuery) (tracestore.BaselineAnswer, error) {
	counter := storequery.NewBaselineCounter(q)
	from, to, ok := q.Window()
	if !ok || len(q.Operations) == 0 {
		return counter.Answer(), ctx.Err()
	}
	c := callQuery{tenant: tenant, from: from, to: to, byOperation: true, byKind: true, conditions: []string{anyOperation(q.Operations)}}
	reasons, err := e.countCalls(ctx, c, counter)
	if err != nil {
		return tracestore.BaselineAnswer{}, fmt.Errorf("counting calls of operations: %w", err)
	}
	a := counter.Answer()
	a.Reasons = reasons
	return a, nil
}

// anyOperation returns the condition that a row is of one of some operations. It names the services
// apart, because they select a range of the table.
func anyOperation(operations []tracestore.OperationKey) string {
	services, all := make([]string, len(operations)), make([]string, len(operations))
	for i, o := range operations {
		services[i] = o.Service
		all[i] = "(" + where.Texts([]string{o.Service, o.Operation, o.Kind}) + ")"
	}
	return "service IN (" + where.Texts(services) + ") AND (service, name, kind) IN (" + strings.Join(all, ", ") + ")"
}
