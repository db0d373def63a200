package zipkin

import (
	"slices"
	"strconv"
	"strings"

	"github.com/tracing-backend/tracing/internal/translate/native"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

const unknownAgentService = "unknown-service-name"

// Tags that describe repairs of a span.
const (
	negativeDuration = "errNegativeDuration"
	zeroParent       = "errZeroParentID"
	errorMessage     = "error.message"
)

// writeAgent writes the span t.in by the rules of the original agent for UDP: the span is repaired,
// converted to Jaeger's model, and then to OTLP. A span that is both client and server becomes two
// spans.
func (t *v1Translator) writeAgent() error {
	in, out := &t.in, &t.span
	if err := t.beginSpan(debugOverUDP); err != nil {
		return err
	}
	given := in.duration
	in.repairTimes()
	out.Start, out.End = nanos(in.timestamp), nanos(native.AddSaturating(in.timestamp, in.duration))
	t.agentTags()
	if given < 0 {
		from := len(t.text)
		t.text = strconv.AppendInt(t.text, given, 10)
		out.Attributes = append(out.Attributes, text(negativeDuration, unsafeString(t.text[from:])))
	}
	if in.hasParent && in.parent.IsZero() {
		out.Attributes = append(out.Attributes, text(zeroParent, "0"))
	}
	kind := in.rpcKind()
	if kind != "" {
		out.Attributes = append(out.Attributes, text("span.kind", kind))
	}
	t.agentEvents()
	t.writeNative()
	return t.writeOtherHalf(kind)
}

// isAgentCore reports whether the agent treats an annotation as a core annotation. Annotations of
// messages are not.
func isAgentCore(value string) bool {
	kind := coreKind(value)
	return kind == otlpdata.KindClient || kind == otlpdata.KindServer
}

// rpcKind returns the value of the tag span.kind. The first core annotation determines it; without
// one it is "".
func (s *v1Span) rpcKind() string {
	for i := range s.annotations {
		switch coreKind(s.annotations[i].value) {
		case otlpdata.KindClient:
			return kindClient
		case otlpdata.KindServer:
			return kindServer
		}
	}
	return ""
}

const kindClient, kindServer = "client", "server"

// agentTags converts the binary annotations that do not belong to the process to attributes.
func (t *v1Translator) agentTags() {
	out := &t.span
	for i := range t.in.tags {
		tag := &t.in.tags[i]
		switch {
		case tag.Key == "":
		case processKey(tag.Key) != "":
		case tag.Key == localComponent:
			out.Attributes = append(out.Attributes, text("component", tag.Value.AsString()))
		case tag.Key == serverAddress || tag.Key == clientAddress || tag.Key == messageAddress:
			if tag.host > 0 {
				t.peerTags(&t.in.hosts[tag.host])
			}
		default:
			t.agentTag(tag.KeyValue)
		}
	}
}

// agentTag adds an attribute. A tag `error` becomes a boolean, and its text another attribute.
func (t *v1Translator) agentTag(kv otlpdata.KeyValue) {
	out := &t.span
	if !strings.EqualFold(kv.Key, "error") || kv.Value.Kind() == otlpdata.ValueBool {
		out.Attributes = append(out.Attributes, kv)
		return
	}
	message := kv.Value
	if message.Kind() == otlpdata.ValueBytes {
		message = otlpdata.StringValue(message.Encoded())
	}
	said := message.AsString()
	kv.Value = otlpdata.BoolValue(!strings.EqualFold(said, "false"))
	out.Attributes = append(out.Attributes, kv)
	if said != "" && !strings.EqualFold(said, "true") && !strings.EqualFold(said, "false") {
		out.Attributes = append(out.Attributes, otlpdata.KeyValue{Key: errorMessage, Value: message})
	}
}

func (t *v1Translator) peerTags(h *v1Host) {
	out := &t.span
	out.Attributes = append(out.Attributes, text("peer.service", h.service))
	if h.packedIPv4 != 0 {
		out.Attributes = append(out.Attributes, intTag("peer.ipv4", int64(h.packedIPv4)))
	}
	if h.ipv6 != "" {
		out.Attributes = append(out.Attributes, otlpdata.KeyValue{
			Key: "peer.ipv6", Value: otlpdata.EncodedValue(otlpdata.ValueBytes, h.ipv6),
		})
	}
	if h.port != 0 {
		out.Attributes = append(out.Attributes, intTag("peer.port", h.port))
	}
}

// writeNative promotes the tags of t.span and writes it into the open resource and scope, or begins
// new ones if they differ.
func (t *v1Translator) writeNative() {
	name, version := native.PromoteTags(&t.span)
	t.next = t.agentProcess(t.next[:0])
	if !t.opened || !slices.Equal(t.next, t.resource) {
		t.opened = true
		t.resource, t.next = t.next, t.resource
		t.out.Resource(t.resource)
		t.scopeName, t.scopeVersion = "", ""
	}
	t.beginScope(name, version)
	t.endSpan()
}

// beginScope begins the scope unless it is the open one.
func (t *v1Translator) beginScope(name, version string) {
	if name != t.scopeName || version != t.scopeVersion {
		t.scopeName, t.scopeVersion = name, version
		t.out.Scope(name, version, nil)
	}
}

// writeOtherHalf writes a second span if t.in is both client and server. kind is the kind of the
// first. The second span has only a kind and times.
func (t *v1Translator) writeOtherHalf(kind string) error {
	in, out := &t.in, &t.span
	sent, isSent := in.when(clientSend)
	received, isReceived := in.when(serverReceive)
	if !isSent || !isReceived {
		return nil
	}
	if err := t.beginSpan(debugOverUDP); err != nil {
		return err
	}
	start, answer, other := received, serverSend, otlpdata.KindServer
	if kind != kindClient {
		start, answer, other = sent, clientReceive, otlpdata.KindClient
	}
	end := start
	if at, ok := in.when(answer); ok {
		end = max(at, start)
	}
	out.Kind, out.DroppedAttributes = other, 0
	out.Start, out.End = nanos(start), nanos(end)
	t.beginScope("", "")
	t.endSpan()
	return nil
}
