package pipeline

import "github.com/tracing-backend/tracing/pipeline/otlpdata"

// Taker is implemented by the next argument of receivers.
type Taker interface {
	// Takes reports whether a pipeline takes batches of the signal now. It may change when the
	// configuration is reloaded.
	Takes(s otlpdata.Signal) bool
}

// Takes reports whether next, the argument of a receiver that can receive log records (see
// [Factory.Logs]), takes batches of a signal now. A Consumer that is not a [Taker], as in tests,
// takes spans.
func Takes(next Consumer, s otlpdata.Signal) bool {
	if t, ok := next.(Taker); ok {
		return t.Takes(s)
	}
	return s == otlpdata.SignalTraces
}
