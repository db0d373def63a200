package remotestorage

import (
	"context"
	"errors"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tracing-backend/tracing/internal/translate/native"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/server"
)

// writers writes spans to stores. A write succeeds only after the store has accepted the spans.
type writers struct {
	set          pipeline.Settings
	tenants      tenants
	limits       otlpdata.Limits
	translations *server.Translator
	refused      func(reason string)
	streams      sync.WaitGroup // goroutines that receive for WriteSpanStream
	// stopping is canceled when the extension stops, because clients keep streams open as long as
	// they run.
	stopping context.Context
	stop     context.CancelFunc
}

func newWriters(set pipeline.Settings, c Config, t tenants, refused func(string)) *writers {
	w := &writers{set: set, tenants: t, limits: c.Limits(), translations: server.NewTranslator(set.Budget), refused: refused}
	w.stopping, w.stop = context.WithCancel(context.Background())
	return w
}

func (w *writers) meta(tenant, format string) otlpdata.Meta {
	return otlpdata.Meta{Tenant: tenant, Format: format, Transport: "grpc", Received: w.set.Env.Now()}
}

// otlp stores an ExportTraceServiceRequest.
func (w *writers) otlp(ctx context.Context, to pipeline.Consumer, request []byte) error {
	tenant, err := w.tenants.of(ctx)
	if err != nil {
		return err
	}
	b, err := otlpdata.FromOTLP(request, w.meta(tenant, "otlp"), w.limits)
	if err != nil {
		w.refused(server.ReasonOf(err))
		return pipeline.Permanent(err)
	}
	walk, err := w.set.Budget.Reserve(int64(b.WalkMemory()))
	if err != nil {
		w.refused(server.ReasonOf(err))
		return err
	}
	defer walk.Release()
	return to.Consume(ctx, b)
}

// native stores the spans of WriteSpanRequests. If it fails, the client resends all of them.
func (w *writers) native(ctx context.Context, to pipeline.Consumer, requests ...[]byte) error {
	tenant, err := w.tenants.of(ctx)
	if err != nil {
		return err
	}
	memory := native.SpansMemory(native.TypicalGrowth, requests...)
	b, err := w.translations.Translate(ctx, requests[0], memory, func(m *server.TranslationMemory) (*otlpdata.Batch, error) {
		otlp, err := spansOf(requests, m)
		if err != nil {
			return nil, err
		}
		b, err := otlpdata.FromOTLP(otlp, w.meta(tenant, "tracing"), w.limits)
		if err != nil {
			return nil, pipeline.Permanent(err)
		}
		return b, nil
	})
	if err != nil {
		w.refused(server.ReasonOf(err))
		return err
	}
	defer b.Release()
	return to.Consume(ctx, b.Batch)
}

// spansOf translates requests. m has enough memory for a typical request; if the output exceeds it,
// spansOf reserves the maximum and restarts.
func spansOf(requests [][]byte, m *server.TranslationMemory) ([]byte, error) {
	limit := native.BaseMemory
	for _, r := range requests {
		limit += native.TypicalGrowth * len(r)
	}
	otlp, err := native.FromSpans(limit, requests...)
	if errors.Is(err, native.ErrOutputTooLarge) {
		if err := m.Resize(native.SpansMemory(native.MaxGrowth, requests...)); err != nil {
			return nil, err
		}
		otlp, err = native.FromSpans(0, requests...)
	}
	if err != nil {
		return nil, pipeline.Permanent(&undecodable{err})
	}
	return otlp, nil
}

// undecodable is the error for requests that cannot be decoded.
type undecodable struct{ err error }

func (e *undecodable) Error() string { return e.err.Error() }
func (e *undecodable) Unwrap() error { return e.err }

// writeStatus returns the gRPC status for the error of a write. For requests that cannot be decoded
// it is Internal, as in gRPC itself.
func writeStatus(err error) error {
	var u *undecodable
	if err == nil {
		return nil
	}
	if errors.As(err, &u) {
		return status.Error(codes.Internal, u.Error())
	}
	return pipeline.GRPCStatus(err).Err()
}
