package remotestorage

import (
	"context"
	"reflect"

	"github.com/tracing-backend/tracing/internal/translate/storewire"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// methods returns the methods of the store service. To serve another method of a store, add it here
// and in exporters/grpc.
func methods() []method {
	return []method{
		{"Capabilities", nil, hello},
		streaming("Traces", sendTraces),
		streaming("SelectSpans", sendSelected),
		streaming("Find", sendFound),
		streaming("Outline", sendOutline),
		{"Follow", reflect.TypeFor[tracestore.Follower](), (*storeService).follow},
		answering("Services", func(ctx context.Context, of asked[tracestore.Catalog], q *storewire.Services) (a storewire.Names, err error) {
			a.Names, a.More, err = of.store.Services(ctx, of.tenant, q.Names)
			return a, err
		}),
		answering("Operations",
			func(ctx context.Context, of asked[tracestore.Catalog], q *storewire.Operations) (a storewire.OperationList, err error) {
				a.Operations, a.More, err = of.store.Operations(ctx, of.tenant, q.Service, q.Kind, q.Names)
				return a, err
			}),
		answering("AttributeKeys",
			func(ctx context.Context, of asked[tracestore.Catalog], q *storewire.Attributes) ([]string, error) {
				return of.store.AttributeKeys(ctx, of.tenant, q.Prefix, q.Limit)
			}),
		answering("AttributeValues",
			func(ctx context.Context, of asked[tracestore.Catalog], q *storewire.Attributes) ([]string, error) {
				return of.store.AttributeValues(ctx, of.tenant, q.Key, q.Prefix, q.Limit)
			}),
		answering("Aggregate", aggregate),
		answering("ProfilePaths", profilePaths),
		answering("Dependencies",
			func(ctx context.Context, of asked[tracestore.Edges], q *storewire.Window) (tracestore.Graph, error) {
				return of.store.Dependencies(ctx, of.tenant, q.From, q.To)
			}),
		answering("Peers", func(ctx context.Context, of asked[tracestore.Edges], q *storewire.Window) (tracestore.Graph, error) {
			return of.store.Peers(ctx, of.tenant, q.From, q.To)
		}),
		answering("Edges", func(ctx context.Context, of asked[tracestore.Edges], q *tracestore.EdgeQuery) (tracestore.EdgeGraph, error) {
			return of.store.Edges(ctx, of.tenant, *q)
		}),
		answering("Metrics",
			func(ctx context.Context, of asked[tracestore.Metrics], q *tracestore.MetricsQuery) (tracestore.MetricsAnswer, error) {
				return of.store.Metrics(ctx, of.tenant, *q)
			}),
		answering("Baselines",
			func(ctx context.Context, of asked[tracestore.Metrics], q *tracestore.BaselineQuery) (tracestore.BaselineAnswer, error) {
				return of.store.Baselines(ctx, of.tenant, *q)
			}),
		answering("FindSpans",
			func(ctx context.Context, of asked[tracestore.Reader], q *storewire.FindSpans) (tracestore.FoundSpans, error) {
				return of.store.FindSpans(ctx, of.tenant, q.Trace, q.Condition)
			}),
		answering("TraceVersion",
			func(ctx context.Context, of asked[tracestore.Reader], q *storewire.Trace) (tracestore.TraceVersion, error) {
				return of.store.TraceVersion(ctx, of.tenant, q.ID)
			}),
		answering("Usage", func(ctx context.Context, of asked[tracestore.UsageReporter], _ *storewire.Usage) (tracestore.Usage, error) {
			return of.store.Usage(ctx, of.tenant)
		}),
		answering("Delete", func(ctx context.Context, of asked[tracestore.Deleter], q *tracestore.Deletion) (tracestore.Deleted, error) {
			return of.store.Delete(ctx, of.tenant, *q)
		}),
	}
}

func aggregate(ctx context.Context, of asked[tracestore.Aggregator], q *storewire.Aggregate) (tracestore.Aggregate, error) {
	if err := q.What.Check(q.Query); err != nil {
		return tracestore.Aggregate{}, invalid(err)
	}
	of.admit(&q.Query, of.tenant)
	return of.store.Aggregate(ctx, q.Query, q.What)
}

func profilePaths(ctx context.Context, of asked[tracestore.PathProfiler], q *storewire.ProfilePaths) (tracestore.PathProfile, error) {
	if err := q.Options.Check(); err != nil {
		return tracestore.PathProfile{}, invalid(err)
	}
	of.admit(&q.Query, of.tenant)
	return of.store.ProfilePaths(ctx, q.Query, q.Selection, q.Options)
}

// admit sets the tenant of a query, which is not part of the request, and limits its work to
// max_scanned_spans.
func (s *storeService) admit(q *tracestore.Query, tenant string) {
	q.Tenant = tenant
	if q.Budget.Spans <= 0 || q.Budget.Spans > s.scanned {
		q.Budget.Spans = s.scanned
	}
}
