package where

import (
	"encoding/hex"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Text returns a string literal. Every byte of s is preserved.
func Text(s string) string {
	var b strings.Builder
	b.Grow(len(s) + 2)
	b.WriteByte('\'')
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		switch {
		case r == '\'' || r == '\\':
			b.WriteByte('\\')
			b.WriteByte(s[0])
		case r < ' ' || r == 0x7f || r == utf8.RuneError && n == 1:
			b.WriteString(`\x`)
			b.WriteString(hex.EncodeToString([]byte{s[0]}))
		default:
			b.WriteString(s[:n])
		}
		s = s[n:]
	}
	b.WriteByte('\'')
	return b.String()
}

// Texts returns a list of string literals, separated by commas.
func Texts(list []string) string {
	quoted := make([]string, len(list))
	for i := range list {
		quoted[i] = Text(list[i])
	}
	return strings.Join(quoted, ", ")
}

// TraceID returns the literal of a trace id.
func TraceID(id otlpdata.TraceID) string { return "unhex('" + hex.EncodeToString(id[:]) + "')" }

// TraceIDs returns a list of trace ids, separated by commas.
func TraceIDs(ids []otlpdata.TraceID) string {
	quoted := make([]string, len(ids))
	for i := range ids {
		quoted[i] = TraceID(ids[i])
	}
	return strings.Join(quoted, ", ")
}

// SpanID returns the literal of a span id.
func SpanID(id otlpdata.SpanID) string { return "unhex('" + hex.EncodeToString(id[:]) + "')" }

// Uint returns the literal of an unsigned number.
func Uint(n uint64) string { return strconv.FormatUint(n, 10) }

// Tenant returns the condition on the tenant.
func Tenant(tenant string) string { return "tenant = " + Text(tenant) }
