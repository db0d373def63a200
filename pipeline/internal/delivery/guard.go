package delivery

import (
	"fmt"
	"runtime/debug"

	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/pipeline/internal/errclass"
	"github.com/tracing-backend/tracing/pipeline/selftrace"
)

// recoverCall is deferred by an edge that calls its component: it turns a panic into an error, so
// that a bug in a component affects one batch instead of the process. span is the span of the call.
func recoverCall(log *zap.Logger, span trace.Span, err *error) {
	if p := recover(); p != nil {
		log.Error("BUG: Consume panicked; the batch is refused", zap.Any("panic", p), zap.ByteString("stack", debug.Stack()))
		*err = fmt.Errorf("%w in Consume", errclass.ErrInternal)
		selftrace.End(span, *err)
	}
}

// checked returns err. If err cannot be read, for example because it is a nil pointer, it panics:
// where recoverCall is deferred, instead of later, where the error is counted and logged.
func checked(err error) error {
	if err != nil {
		_, _ = err.Error(), errclass.Of(err)
	}
	return err
}
