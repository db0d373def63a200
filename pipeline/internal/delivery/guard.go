package delivery

import (
	"context"
	"fmt"
	"runtime/debug"

	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/internal/errclass"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// consumeSafely calls c.Consume and turns a panic into an error, so that a bug in a component
// affects one batch instead of the process.
func consumeSafely(ctx context.Context, c pipeline.Consumer, b *otlpdata.Batch, log *zap.Logger) (err error) {
	defer recoverConsume(log, &err)
	return c.Consume(ctx, b)
}

// recoverConsume is deferred: it turns a panic into an error.
func recoverConsume(log *zap.Logger, err *error) {
	if p := recover(); p != nil {
		log.Error("BUG: Consume panicked; the batch is refused", zap.Any("panic", p), zap.ByteString("stack", debug.Stack()))
		*err = fmt.Errorf("%w in Consume", errclass.ErrInternal)
	}
}

// guard is a Consumer that recovers from panics of the next one.
type guard struct {
	next pipeline.Consumer
	log  *zap.Logger
}

// Consume passes b to the next Consumer.
func (g *guard) Consume(ctx context.Context, b *otlpdata.Batch) error {
	return consumeSafely(ctx, g.next, b, g.log)
}

// Refusing returns the part of the next Consumer that refused a batch with err.
func (g *guard) Refusing(err error) pipeline.Consumer {
	return &guard{refusing(g.next, err), g.log}
}
