package failure

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

const (
	idBytes = 8 // of an id, which has two characters for each
	// maxKept is the number of stack traces, and of messages, whose frames and patterns are kept,
	// because most of them repeat.
	maxKept = 1000
	// maxKeptText is the maximum length in bytes of a text that is kept.
	maxKeptText = 8 << 10
)

// Grouper finds the ids of groups. It keeps what it found, so that it is faster than Group for many
// spans. The zero value is ready. Not safe for concurrent use.
type Grouper struct{ frames, patterns map[string]string }

// Group returns the id of the group of failures to which a failed span belongs. A group has one
// service, type, message without its variable parts (of an exception or of the status) and top
// frame. Without message and frame it also has one operation.
func Group(service string, s *otlpdata.Span) string { return (&Grouper{}).id(service, s, false) }

// Group is like the function Group.
func (g *Grouper) Group(service string, s *otlpdata.Span) string { return g.id(service, s, true) }

func (g *Grouper) id(service string, s *otlpdata.Span, keep bool) string {
	f := Of(s)
	pattern := kept(&g.patterns, keep, f.Message, func(text string) string {
		p := PatternOf(text)
		return p.String()
	})
	frame := kept(&g.frames, keep, f.Stack, func(text string) string { return TopFrame(text).String() })
	operation := ""
	if pattern == "" && frame == "" {
		operation = s.Operation()
	}
	place := "status"
	if f.MessageOfEvent {
		place = "event"
	}
	var buf [512]byte
	text := buf[:0]
	for _, part := range []string{service, f.Type, pattern, frame, operation, place} {
		text = append(append(text, strings.ToValidUTF8(part, "\ufffd")...), 0)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:idBytes])
}

// kept returns what of returns for a text, which it keeps if permitted.
func kept(in *map[string]string, keep bool, text string, of func(string) string) string {
	if text == "" {
		return ""
	}
	if out, known := (*in)[text]; known {
		return out
	}
	out := of(text)
	if keep && len(*in) < maxKept && len(text) <= maxKeptText {
		if *in == nil {
			*in = make(map[string]string)
		}
		(*in)[strings.Clone(text)] = strings.Clone(out)
	}
	return out
}
