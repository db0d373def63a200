package otlpdata

import (
	"fmt"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/pipeline/otlpdata/protoenc"
)

// decode returns the spans of requests as pdata objects.
func decode(chunks [][]byte) (ptrace.Traces, error) {
	all := ptrace.NewTraces()
	for i, s := range chunks {
		td, err := (&ptrace.ProtoUnmarshaler{}).UnmarshalTraces(withoutOldScopes(s))
		if err != nil {
			return ptrace.Traces{}, fmt.Errorf("decoding spans: %w", err)
		}
		if i == 0 {
			all = td
			continue
		}
		td.ResourceSpans().MoveAndAppendTo(all.ResourceSpans())
	}
	return all, nil
}

// withoutOldScopes returns a request without the deprecated field of scopes: in a resource without
// other scopes, its scopes get the current field number. pdata does the same for requests, but only
// in a package that imports gRPC, which each program that uses batches would then link.
func withoutOldScopes(request []byte) []byte {
	found := false
	for f := range protoenc.Fields(request) {
		if f.Num == 1 && f.Bytes {
			found = found || hasScopes(f.Content, oldScopeSpans)
		}
	}
	if !found {
		return request
	}
	out := make([]byte, 0, len(request))
	for f := range protoenc.Fields(request) {
		if f.Num != 1 || !f.Bytes {
			out = append(out, f.Raw...)
			continue
		}
		keep := !hasScopes(f.Content, 2)
		var at int
		out, at = protoenc.BeginMessage(out, 1, groupLength)
		for g := range protoenc.Fields(f.Content) {
			switch {
			case !g.Bytes || g.Num != oldScopeSpans:
				out = append(out, g.Raw...)
			case keep:
				out = protoenc.AppendBytes(out, 2, g.Content)
			}
		}
		out = protoenc.EndMessage(out, at, groupLength)
	}
	return out
}

// hasScopes reports whether a resource has scopes in the field with the given number.
func hasScopes(resource []byte, num int) bool {
	for f := range protoenc.Fields(resource) {
		if f.Bytes && f.Num == num {
			return true
		}
	}
	return false
}
