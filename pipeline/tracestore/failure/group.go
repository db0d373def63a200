package failure

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

const (
	idBytes = 8 // length of an id, which is written with two characters per byte
	// maxKept is the number of stack traces whose frames are cached, and the number of messages
	// whose patterns are cached. Most of them repeat.
	maxKept = 1000
	// maxKeptText is the maximum length in bytes of a cached text.
	maxKeptText = 8 << 10
)

// Grouper finds the ids of groups. It caches frames and patterns, so that it is faster than Group
// for many spans. The zero value is ready to use. A Grouper is not safe for concurrent use.
type Grouper struct{ frames, patterns map[string]string }

// Group returns the id of the group of failures to which a failed span belongs. Failures are in the
// same group if they have the same service, type, message (of an exception or of the status)
// without its variable parts, and top frame. Failures without message and frame must also have the
// same operation.
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

// kept returns the result of calling of with a text, and caches it within the limits.
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
