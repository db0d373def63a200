// Package native receives spans in the native model: protobuf over gRPC (PostSpans), and Thrift in the binary protocol over HTTP. Both are
// translated to OTLP bytes in one pass.
package native

import (
	"context"
	"errors"
	"math"
	"runtime"
	"sync"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/server"
)

// The endpoints that clients of a collector expect.
const (
	defaultGRPCEndpoint = "localhost:14250"
	defaultHTTPEndpoint = "localhost:14268"
)

// format is what metrics call the spans of this receiver, over both protocols.
const format = "tracing"

type config struct {
	Protocols protocols `yaml:"protocols" doc:"What to listen for; at least one."`
	MaxSpans  int       `yaml:"max_spans_per_request" doc:"Greatest number of spans in one request."`
	MaxItems  int       `yaml:"max_items_per_list" doc:"Greatest number of tags, logs or references in one list; all fields of a span's logs are one."`
}

type protocols struct {
	GRPC pipeline.Optional[server.GRPCConfig] `yaml:"grpc" doc:"Protobuf over gRPC: what agents send."`
	HTTP pipeline.Optional[server.HTTPConfig] `yaml:"http" doc:"Thrift over HTTP: what client libraries send past the agent."`
}

func defaults() config {
	lim := otlpdata.DefaultLimits()
	return config{
		Protocols: protocols{
			GRPC: pipeline.Absent(server.DefaultGRPCConfig(defaultGRPCEndpoint)),
			HTTP: pipeline.Absent(server.DefaultHTTPConfig(defaultHTTPEndpoint)),
		},
		MaxSpans: lim.Spans,
		MaxItems: lim.Items,
	}
}

// Validate reports mistakes between keys.
func (c *config) Validate() error {
	var errs []error
	_, grpc := c.Protocols.GRPC.Get()
	_, http := c.Protocols.HTTP.Get()
	if !grpc && !http {
		errs = append(errs, pipeline.BadKey("protocols", "needs grpc, http or both; an empty block takes the defaults: protocols: {grpc: }"))
	}
	if c.MaxSpans < 1 || c.MaxSpans > math.MaxInt32 {
		errs = append(errs, pipeline.BadKey("max_spans_per_request", "must be from 1 to %d, not %d", math.MaxInt32, c.MaxSpans))
	}
	if c.MaxItems < 1 || c.MaxItems > math.MaxInt32 {
		errs = append(errs, pipeline.BadKey("max_items_per_list", "must be from 1 to %d, not %d", math.MaxInt32, c.MaxItems))
	}
	return errors.Join(errs...)
}

// Factory makes receivers of type native.
func Factory() pipeline.Factory {
	return pipeline.Receiver("native", defaults, newReceiver).
		Doc("Receives spans in the native formats: protobuf over gRPC, as agents send them, and Thrift over HTTP.")
}

// listener is one protocol's server.
type listener interface {
	pipeline.Starter
	pipeline.Stopper
	Addr() string
}

type receiver struct {
	set     pipeline.Settings
	next    pipeline.Consumer
	lim     otlpdata.Limits
	servers map[string]listener // by protocol, of which at least one
	// slots are for translations, one for each processor: more at once would not be faster, and would hold memory.
	slots chan struct{}
}

var (
	_ pipeline.Stopper   = (*receiver)(nil)
	_ pipeline.Addressed = (*receiver)(nil)
)

func newReceiver(set pipeline.Settings, c config, next pipeline.Consumer) (*receiver, error) {
	// Size is the listeners' limit, and depends on the protocol.
	r := &receiver{set: set, next: next, lim: otlpdata.Limits{Bytes: math.MaxInt, Spans: c.MaxSpans, Items: c.MaxItems}}
	r.servers = map[string]listener{}
	r.slots = make(chan struct{}, runtime.GOMAXPROCS(0))
	if cfg, on := c.Protocols.GRPC.Get(); on {
		s, err := newGRPCServer(r, cfg)
		if err != nil {
			return nil, err
		}
		r.servers["grpc"] = s
	}
	if cfg, on := c.Protocols.HTTP.Get(); on {
		s, err := newHTTPServer(r, cfg)
		if err != nil {
			return nil, err
		}
		r.servers["http"] = s
	}
	return r, nil
}

// Start opens all listeners, or none.
func (r *receiver) Start(ctx context.Context) error {
	var started []listener
	for _, s := range r.servers {
		if err := s.Start(ctx); err != nil {
			return errors.Join(err, stopAll(ctx, started))
		}
		started = append(started, s)
	}
	return nil
}

// Stop drains all listeners at once.
func (r *receiver) Stop(ctx context.Context) error {
	var all []listener
	for _, s := range r.servers {
		all = append(all, s)
	}
	return stopAll(ctx, all)
}

func stopAll(ctx context.Context, all []listener) error {
	errs := make([]error, len(all))
	var wg sync.WaitGroup
	for i, s := range all {
		wg.Go(func() { errs[i] = s.Stop(ctx) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// Addr returns the address of the listener `grpc` or `http`.
func (r *receiver) Addr(name string) string {
	if s, ok := r.servers[name]; ok {
		return s.Addr()
	}
	return ""
}

// undecodable is the error of bytes that are no batch of spans.
type undecodable struct{ err error }

func (e *undecodable) Error() string { return e.err.Error() }
func (e *undecodable) Unwrap() error { return e.err }

// batch is a request's spans with what they take of the budget.
type batch struct {
	*otlpdata.Batch
	held *pipeline.Reservation
}

// translate makes a batch of a request's body. The caller releases what it holds. The error is permanent unless the budget is used up for
// the moment or ctx has ended, and wraps an *undecodable or a limit.
func (r *receiver) translate(ctx context.Context, body []byte, w wireFormat) (batch, error) {
	select {
	case r.slots <- struct{}{}:
		defer func() { <-r.slots }()
	case <-ctx.Done():
		return batch{}, ctx.Err()
	}
	held, err := r.reserve(w.memory(body), len(body))
	if err != nil {
		return batch{}, err
	}
	b, err := r.decode(ctx, body, w)
	if err == nil {
		err = r.resize(held, int64(b.Size()+b.WalkMemory()), len(body))
	}
	if err != nil {
		held.Release()
		return batch{}, err
	}
	return batch{b, held}, nil
}

func (r *receiver) decode(ctx context.Context, body []byte, w wireFormat) (*otlpdata.Batch, error) {
	otlp, err := w.translate(body)
	if err != nil {
		return nil, pipeline.Permanent(&undecodable{err})
	}
	meta := otlpdata.Meta{Tenant: server.Tenant(ctx), Format: format, Transport: w.transport, Received: r.set.Env.Now()}
	b, err := otlpdata.FromOTLP(otlp, meta, r.lim)
	if err != nil {
		return nil, pipeline.Permanent(err)
	}
	return b, nil
}

// consume hands the spans on. A batch of which a part was refused for good is a success to the client: the protocols cannot tell it, and
// an error would make it send the rest again. The refused spans are counted where they were refused.
func (r *receiver) consume(ctx context.Context, b batch) error {
	defer b.held.Release()
	err := r.next.Consume(ctx, b.Batch)
	var partial *pipeline.Partial
	if errors.As(err, &partial) {
		return nil
	}
	return err
}

// reserve takes memory of the budget, beside the body that the server has taken it for. What can never fit is too large, not to be sent
// again.
func (r *receiver) reserve(size int64, body int) (*pipeline.Reservation, error) {
	if err := r.fits(size, body); err != nil {
		return nil, err
	}
	return r.set.Budget.Reserve(size)
}

func (r *receiver) resize(held *pipeline.Reservation, size int64, body int) error {
	if err := r.fits(size, body); err != nil {
		return err
	}
	return held.Resize(size)
}

func (r *receiver) fits(size int64, body int) error {
	if limit := r.set.Budget.Limit(); limit > 0 && size+int64(body) > limit {
		return &otlpdata.LimitError{Limit: "bytes of memory for the request", Max: int(limit), TooLarge: true}
	}
	return nil
}

// reasonOf names a refusal for the metric.
func reasonOf(err error) string {
	if errors.Is(err, pipeline.ErrOverBudget) {
		return server.ReasonOverBudget
	}
	var limit *otlpdata.LimitError
	if errors.As(err, &limit) && limit.TooLarge {
		return server.ReasonTooLarge
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return server.ReasonIncomplete // nobody waits for the answer any more
	}
	return server.ReasonUndecodable
}
