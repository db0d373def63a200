package otlpdata

import "go.opentelemetry.io/collector/pdata/ptrace"

// Bits of the field `flags` of a span in Jaeger's model.
const (
	FlagSampled uint32 = 1
	FlagDebug   uint32 = 2
)

// FlagsAttribute is the attribute that carries Jaeger's flags of a span through OTLP, as an
// integer. It is set only if there are flags other than FlagSampled, for which OTLP has a bit. The
// attribute is part of the payload but is hidden from users: query responses leave it out.
const FlagsAttribute = "@tracing@flags"

// NativeFlags returns the flags of the span in Jaeger's model.
func (s *Span) NativeFlags() uint32 {
	if v, ok := Get(s.Attributes, FlagsAttribute); ok && v.Kind() == ValueInt {
		return uint32(v.Int())
	}
	return s.Flags & FlagSampled
}

// flagsOf is NativeFlags for pdata.
func flagsOf(s ptrace.Span) uint32 {
	if v, ok := s.Attributes().Get(FlagsAttribute); ok {
		return uint32(v.Int()) // 0 if the value has another type
	}
	return s.Flags() & FlagSampled
}
