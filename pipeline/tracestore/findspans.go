package tracestore

import (
	"bytes"
	"context"
	"strings"
	"unicode/utf8"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// FoundSpans is the result of Reader.FindSpans.
type FoundSpans struct {
	// IDs are the ids of the spans that were found, in any order. Spans with the same id and start
	// may count once.
	IDs []otlpdata.SpanID
	// Spans is the number of spans that were examined, with duplicates. It is 0 if the store has no
	// spans of the trace.
	Spans int
}

// SpanCondition is met by a span that contains Text and for which Where holds.
type SpanCondition struct {
	Where Expr // without fields of the trace; nil matches every span
	// Text is searched in the name, service, status message, attributes and events of a span and in
	// the attributes of its resource and scope, in lower and upper case. An attribute is searched
	// as `key=value`. An empty text is in every span.
	Text string
}

// SpanMatcher evaluates a SpanCondition. It is not safe for concurrent use.
type SpanMatcher struct {
	where Expr
	text  []byte // in lower case
	ascii bool   // text has only ASCII characters
	texts []byte // scratch

	resource string // content of the last resource and scope
	scope    string
	inOrigin bool // the text is in them
}

// Matcher returns a matcher for the spans of one query. After ctx has ended, its results may be
// wrong; see [WithContext].
func (c SpanCondition) Matcher(ctx context.Context) *SpanMatcher {
	m := &SpanMatcher{where: WithContext(ctx, c.Where), text: []byte(strings.ToLower(c.Text)), ascii: true}
	for i := range len(m.text) {
		m.ascii = m.ascii && m.text[i] < utf8.RuneSelf
	}
	return m
}

// Matches reports whether a span meets the condition.
func (m *SpanMatcher) Matches(s Span) bool {
	if len(m.text) > 0 && (len(s.Resource.Raw) == 0 || string(s.Resource.Raw) != m.resource || string(s.Scope.Raw) != m.scope) {
		m.resource, m.scope, m.inOrigin = string(s.Resource.Raw), string(s.Scope.Raw), m.OriginHasText(s.Resource, s.Scope)
	}
	return m.MatchesIn(s, m.inOrigin)
}

// OriginHasText reports whether the text is in a resource or a scope.
func (m *SpanMatcher) OriginHasText(r *otlpdata.Resource, s *otlpdata.Scope) bool {
	m.begin(r.Service, s.Name, s.Version)
	m.add(r.Attributes)
	m.add(s.Attributes)
	return m.hasText()
}

// MatchesIn is like Matches, for a caller that already knows the result of OriginHasText for the
// span's resource and scope.
func (m *SpanMatcher) MatchesIn(s Span, originHasText bool) bool {
	return Match(m.where, s) && (len(m.text) == 0 || originHasText || m.spanHasText(s.Span))
}

func (m *SpanMatcher) spanHasText(s *otlpdata.Span) bool {
	m.begin(s.Operation(), s.StatusMessage)
	m.add(s.Attributes)
	for i := range s.Events {
		m.texts = append(append(m.texts, s.Events[i].Name...), betweenTexts)
		m.add(s.Events[i].Attributes)
	}
	return m.hasText()
}

// betweenTexts separates texts. It hardly ever occurs in texts, so no match spans two of them.
const betweenTexts = 0

func (m *SpanMatcher) begin(texts ...string) {
	m.texts = m.texts[:0]
	for _, text := range texts {
		m.texts = append(append(m.texts, text...), betweenTexts)
	}
}

func (m *SpanMatcher) add(attributes []otlpdata.KeyValue) {
	for i := range attributes {
		kv := &attributes[i]
		m.texts = append(append(m.texts, kv.Key...), '=')
		m.texts = append(kv.Value.AppendText(m.texts), betweenTexts)
	}
}

func (m *SpanMatcher) hasText() bool {
	if !m.ascii {
		return bytes.Contains(bytes.ToLower(m.texts), m.text)
	}
	for i, c := range m.texts {
		if c-'A' <= 'Z'-'A' {
			m.texts[i] = c | 0x20
		}
	}
	return bytes.Contains(m.texts, m.text)
}
