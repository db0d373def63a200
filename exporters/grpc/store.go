package grpc

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/tracing-backend/tracing/internal/translate/storewire"
	"github.com/tracing-backend/tracing/internal/wire/store_v1"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

var (
	_ tracestore.Provider         = (*exporter)(nil)
	_ tracestore.AttributeCatalog = (*exporter)(nil)
	_ tracestore.GroupAggregator  = (*exporter)(nil)
	_ tracestore.Peers            = (*exporter)(nil)
	_ tracestore.Edges            = (*exporter)(nil)
	_ tracestore.Metrics          = (*exporter)(nil)
	_ tracestore.Baselines        = (*exporter)(nil)
	_ tracestore.Outliner         = (*exporter)(nil)
	_ tracestore.SpanSelector     = (*exporter)(nil)
	_ tracestore.SpanFinder       = (*exporter)(nil)
	_ tracestore.PathProfiler     = (*exporter)(nil)
	_ tracestore.Versioner        = (*exporter)(nil)
	_ tracestore.UsageReporter    = (*exporter)(nil)
	_ tracestore.Follower         = (*exporter)(nil)
	_ tracestore.Deleter          = (*exporter)(nil)
)

// provideTimeout is how long Provide waits for a server that does not answer.
const provideTimeout = 2 * time.Second

// Provide implements tracestore.Provider. If the server is this program, it supports what the store
// of the server supports, and otherwise what the protocol does.
func (e *exporter) Provide(ctx context.Context, tenant string, target any) bool {
	ctx, cancel := context.WithTimeout(e.withReadMetadata(ctx, tenant), provideTimeout)
	defer cancel()
	c, err := e.server.capabilities(ctx)
	can := func(one store_v1.Capability) bool { return err != nil || c.store[one] }
	switch t := target.(type) {
	case *tracestore.Reader:
		return set[tracestore.Reader](t, e, true)
	case *tracestore.Catalog:
		return set[tracestore.Catalog](t, e, true)
	case *tracestore.Dependencies:
		return set[tracestore.Dependencies](t, e, can(store_v1.Capability_CAPABILITY_DEPENDENCIES) || c.store == nil)
	case *tracestore.AttributeCatalog:
		return set[tracestore.AttributeCatalog](t, e, can(store_v1.Capability_CAPABILITY_ATTRIBUTE_CATALOG))
	case *tracestore.Aggregator:
		return set[tracestore.Aggregator](t, e, can(store_v1.Capability_CAPABILITY_AGGREGATOR))
	case *tracestore.GroupAggregator:
		return set[tracestore.GroupAggregator](t, e, can(store_v1.Capability_CAPABILITY_GROUPS))
	case *tracestore.Peers:
		return set[tracestore.Peers](t, e, can(store_v1.Capability_CAPABILITY_PEERS))
	case *tracestore.Edges:
		return set[tracestore.Edges](t, e, can(store_v1.Capability_CAPABILITY_EDGES))
	case *tracestore.Metrics:
		return set[tracestore.Metrics](t, e, can(store_v1.Capability_CAPABILITY_METRICS))
	case *tracestore.Baselines:
		return set[tracestore.Baselines](t, e, can(store_v1.Capability_CAPABILITY_BASELINES))
	case *tracestore.Outliner:
		return set[tracestore.Outliner](t, e, can(store_v1.Capability_CAPABILITY_OUTLINER))
	case *tracestore.SpanSelector:
		return set[tracestore.SpanSelector](t, e, can(store_v1.Capability_CAPABILITY_SPAN_SELECTOR))
	case *tracestore.SpanFinder:
		return set[tracestore.SpanFinder](t, e, can(store_v1.Capability_CAPABILITY_SPAN_FINDER))
	case *tracestore.PathProfiler:
		return set[tracestore.PathProfiler](t, e, can(store_v1.Capability_CAPABILITY_PATHS))
	case *tracestore.Versioner:
		return set[tracestore.Versioner](t, e, can(store_v1.Capability_CAPABILITY_VERSIONER))
	case *tracestore.UsageReporter:
		return set[tracestore.UsageReporter](t, e, can(store_v1.Capability_CAPABILITY_USAGE))
	case *tracestore.Follower:
		return set[tracestore.Follower](t, e, can(store_v1.Capability_CAPABILITY_FOLLOWER))
	case *tracestore.Deleter:
		return set[tracestore.Deleter](t, e, can(store_v1.Capability_CAPABILITY_DELETER))
	}
	return false
}

// set sets a variable if ok is true.
func set[T any](variable *T, value T, ok bool) bool {
	if ok {
		*variable = value
	}
	return ok
}

// storeService returns whether the server has the store service of this program. ctx must have the
// metadata of withReadMetadata.
func (e *exporter) storeService(ctx context.Context) (bool, error) {
	c, err := e.server.capabilities(ctx)
	if err != nil {
		return false, e.readError(ctx, err)
	}
	return c.store != nil, nil
}

// requires returns an error unless the store of the server has a capability. ctx must have the
// metadata of withReadMetadata.
func (e *exporter) requires(ctx context.Context, one store_v1.Capability) error {
	c, err := e.server.capabilities(ctx)
	if err != nil {
		return e.readError(ctx, err)
	}
	if !c.store[one] {
		return fmt.Errorf("%w: remote storage server %s has no such method", tracestore.ErrUnsupported, e.cfg.Endpoint)
	}
	return nil
}

// join makes a call and joins the parts of the answer in answer. ctx must have the metadata of
// withReadMetadata.
func (e *exporter) join(ctx context.Context, method string, request, answer proto.Message) error {
	memory, err := tracestore.Reserve(ctx, 0)
	if err != nil {
		return err
	}
	defer memory.Release()
	_, err = receive(ctx, e.store, method, request, func(part []byte) error {
		if err := memory.Grow(decodedMemory(answer, part)); err != nil {
			return err
		}
		return storewire.Join(answer, part)
	})
	return e.storeError(ctx, err)
}

// decodedMemory returns the approximate memory of a part of an answer in bytes: decoded, and
// converted.
func decodedMemory(answer proto.Message, part []byte) int64 {
	return 2 * storewire.DecodedSize(answer.ProtoReflect().Descriptor(), part)
}

// call is like join, for a method that requires a capability.
func (e *exporter) call(
	ctx context.Context, tenant string, one store_v1.Capability, method string, request, answer proto.Message,
) error {
	ctx = e.withReadMetadata(ctx, tenant)
	if err := e.requires(ctx, one); err != nil {
		return err
	}
	return e.join(ctx, method, request, answer)
}

// classified is an error of a remote store that matches another error, such as one of package
// tracestore.
type classified struct {
	text          string
	class, status error
}

func (e *classified) Error() string   { return e.text }
func (e *classified) Unwrap() []error { return []error{e.class, e.status} }

// storeError returns the error for an error of the store service, with the class that the store
// gave it.
func (e *exporter) storeError(ctx context.Context, err error) error {
	s, ok := status.FromError(err)
	if err == nil || !ok || ctx.Err() != nil {
		if ctx.Err() != nil && err != nil {
			return ctx.Err()
		}
		return err
	}
	reason := ""
	for _, d := range s.Details() {
		switch d := d.(type) {
		case *store_v1.Damage:
			return storewire.GetDamage(d)
		case *errdetails.ErrorInfo:
			if d.GetDomain() == storewire.Domain {
				reason = d.GetReason()
			}
		}
	}
	switch {
	case s.Code() == codes.Unimplemented:
		return fmt.Errorf("%w: %w", tracestore.ErrUnsupported, e.readError(ctx, err))
	case reason == storewire.ReasonNotAllowed:
		return &classified{s.Message(), tracestore.ErrNotAllowed, err}
	case reason == storewire.ReasonBadDeletion:
		return &classified{s.Message(), tracestore.ErrBadDeletion, err}
	}
	return e.readError(ctx, err)
}
