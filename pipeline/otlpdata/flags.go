package otlpdata

import "go.opentelemetry.io/collector/pdata/ptrace"

// Flags of a span in the native model (its field `flags`).
const (
	FlagSampled uint32 = 1
	FlagDebug   uint32 = 2
)

// FlagsAttribute is the attribute that carries the native flags of a span through OTLP, as an integer, where they are more than
// FlagSampled, for which OTLP has a bit of its own. It is part of the payload, not of what users see: answers leave it out.
const FlagsAttribute = "@tracing@flags"

// NativeFlags returns the span's flags in the native model.
func (s *Span) NativeFlags() uint32 {
	if v, ok := Get(s.Attributes, FlagsAttribute); ok && v.Kind() == ValueInt {
		return uint32(v.Int())
	}
	return s.Flags & FlagSampled
}

// flagsOf is NativeFlags for pdata.
func flagsOf(s ptrace.Span) uint32 {
	if v, ok := s.Attributes().Get(FlagsAttribute); ok {
		return uint32(v.Int()) // 0 of another type
	}
	return s.Flags() & FlagSampled
}
