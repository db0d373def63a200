package tempo

import (
	"encoding/hex"
	"strings"

	"github.com/tracing-backend/tracing/internal/translate/otlpchunks"
	"github.com/tracing-backend/tracing/pipeline/otlpdata/protoenc"
)

// maxSet is the maximum number of bytes of a set of spans in a protobuf message. It is contained
// twice, and the message has at most maxMessage bytes.
const maxSet = maxMessage * 4 / 10

// appendProto is like appendJSON, as a protobuf message (see TraceSearchMetadata in package
// streaming of internal/wire) that is a field of another message.
func (m *match) appendProto(dst []byte, num int) []byte {
	m.set = m.sets[0].appendProto(m.set[:0])
	s := &m.summary
	dst, at := protoenc.BeginMessage(dst, num, lengthBytes)
	dst = protoenc.AppendString(dst, 1, s.ID.String())
	dst = protoenc.AppendString(dst, 2, validText(s.RootService))
	dst = protoenc.AppendString(dst, 3, validText(s.RootName))
	dst = protoenc.AppendUint(dst, 4, s.Start)
	dst = protoenc.AppendUint(dst, 5, durationMillis(s))
	dst = protoenc.AppendBytes(dst, 6, m.set)
	dst = protoenc.AppendBytes(dst, 7, m.set)
	for i := range m.sets[1:] {
		if m.set = m.sets[1+i].appendProto(m.set[:0]); len(dst)-at+len(m.set) > 2*maxSet {
			break
		}
		dst = protoenc.AppendBytes(dst, 7, m.set)
	}
	for i := range s.Services {
		svc := &s.Services[i]
		var entry, stats int
		dst, entry = protoenc.BeginMessage(dst, 8, 1)
		dst = protoenc.AppendString(dst, 1, validText(svc.Name))
		dst, stats = protoenc.BeginMessage(dst, 2, 1)
		dst = protoenc.AppendUint(dst, 1, uint64(svc.Spans))
		dst = protoenc.AppendUint(dst, 2, uint64(svc.Errors))
		dst = protoenc.EndMessage(protoenc.EndMessage(dst, stats, 1), entry, 1)
	}
	return protoenc.EndMessage(dst, at, lengthBytes)
}

// lengthBytes is the usual number of bytes of a message's length.
const lengthBytes = 2

// appendProto appends the spans. The last ones are left out if there is no space for them.
func (s *foundSet) appendProto(dst []byte) []byte {
	for i := range s.spans {
		before := len(dst)
		if dst = s.spans[i].appendProto(dst); len(dst) > maxSet {
			dst = dst[:before]
			break
		}
	}
	dst = protoenc.AppendUint(dst, 2, uint64(s.matched))
	return otlpchunks.AppendAttributes(dst, 3, s.values)
}

func (s *foundSpan) appendProto(dst []byte) []byte {
	dst, at := protoenc.BeginMessage(dst, 1, lengthBytes)
	dst = protoenc.AppendString(dst, 1, hex.EncodeToString(s.id[:]))
	dst = protoenc.AppendString(dst, 2, validText(s.name))
	dst = protoenc.AppendUint(dst, 3, s.start)
	dst = protoenc.AppendUint(dst, 4, s.duration)
	dst = otlpchunks.AppendAttributes(dst, 5, s.fields)
	return protoenc.EndMessage(dst, at, lengthBytes)
}

// validText returns valid UTF-8, because clients reject messages with other texts.
func validText(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
