package zipkin

import "github.com/tracing-backend/tracing/pipeline/otlpdata"

// processKey returns the process tag for the key of a binary annotation, or "" if the annotation
// belongs to the span. Clients write the names of the original project.
func processKey(key string) string {
	switch key {
	case "jaegerClient", "jaeger.version", "tracingClient", "tracing.version":
		return "jaeger.version"
	case "jaeger.hostname", "tracing.hostname":
		return "hostname"
	}
	return ""
}

// agentProcess appends the resource for the span t.in: its process in Jaeger's model, converted to
// OTLP. If a tag is repeated, the last one is used.
func (t *v1Translator) agentProcess(dst []otlpdata.KeyValue) []otlpdata.KeyValue {
	service, ipv4 := t.in.emitter()
	dst = append(dst, text("service.name", service))
	version, host := -1, -1
	for i := range t.in.tags {
		key := processKey(t.in.tags[i].Key)
		switch key {
		case "":
			continue
		case "hostname":
			host = len(dst)
		default:
			version = len(dst)
		}
		dst = append(dst, otlpdata.KeyValue{Key: key, Value: t.in.tags[i].Value})
	}
	if host > 0 {
		dst[host].Key = "host.name"
	}
	if version > 0 && dst[version].Value.Kind() == otlpdata.ValueString {
		from := len(t.text)
		t.text = append(append(t.text, "Jaeger-"...), dst[version].Value.Str()...)
		dst[version] = text("opencensus.exporterversion", unsafeString(t.text[from:]))
	}
	if ipv4 != 0 {
		dst = append(dst, intTag("ip", int64(ipv4)))
	}
	return dst
}

// emitter returns the service that emitted the span and its address: the first service in a core
// annotation, otherwise in the local component, otherwise in any annotation, otherwise in any
// binary annotation.
func (s *v1Span) emitter() (service string, ipv4 uint32) {
	const byCore, byComponent, byAnnotation, byTag, byNone = 1, 2, 3, 4, 5
	found, rank := &s.hosts[0], byNone
	for i := range s.annotations {
		h, r := &s.hosts[s.annotations[i].host], byAnnotation
		if isAgentCore(s.annotations[i].value) {
			r = byCore
		}
		if r < rank && h.service != "" {
			found, rank = h, r
		}
	}
	for i := range s.tags {
		h, r := &s.hosts[s.tags[i].host], byTag
		if s.tags[i].Key == localComponent {
			r = byComponent
		}
		if r < rank && h.service != "" {
			found, rank = h, r
		}
	}
	if rank == byNone {
		return unknownAgentService, 0
	}
	return found.service, found.packedIPv4
}
