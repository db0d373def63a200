package zipkin

import (
	"encoding/hex"
	"strconv"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// appendJSON appends the span to an array of spans. A trace id of 64 bits has 16 digits.
func (z *outSpan) appendJSON(dst []byte) []byte {
	if dst[len(dst)-1] != '[' {
		dst = append(dst, ',')
	}
	id := z.traceID[:]
	if otlpdata.SpanID(id[:8]).IsZero() {
		id = id[8:]
	}
	dst = hex.AppendEncode(append(dst, `{"traceId":"`...), id)
	if !z.parent.IsZero() {
		dst = hex.AppendEncode(append(dst, `","parentId":"`...), z.parent[:])
	}
	dst = hex.AppendEncode(append(dst, `","id":"`...), z.id[:])
	dst = append(dst, '"')
	if kind := zipkinKinds[z.kindNumber()]; kind != "" {
		dst = append(append(append(dst, `,"kind":"`...), kind...), '"')
	}
	if z.name != "" {
		dst = otlpdata.AppendJSONString(append(dst, `,"name":`...), z.name)
	}
	if z.timestamp > 0 {
		dst = strconv.AppendUint(append(dst, `,"timestamp":`...), z.timestamp, 10)
	}
	if z.duration > 0 {
		dst = strconv.AppendUint(append(dst, `,"duration":`...), z.duration, 10)
	}
	dst = z.local.appendJSON(dst, `,"localEndpoint":{`)
	dst = z.remote.appendJSON(dst, `,"remoteEndpoint":{`)
	dst = z.appendAnnotations(dst)
	dst = z.appendTags(dst)
	if z.debug {
		dst = append(dst, `,"debug":true`...)
	}
	return append(dst, '}')
}

func (e *outEndpoint) appendJSON(dst []byte, start string) []byte {
	if e.isEmpty() {
		return dst
	}
	dst = append(dst, start...)
	from := len(dst)
	if e.service != "" {
		dst = otlpdata.AppendJSONString(append(dst, `"serviceName":`...), e.service)
	}
	if e.address.IsValid() {
		key := `"ipv4":"`
		if e.address.Is6() {
			key = `"ipv6":"`
		}
		dst = append(e.address.AppendTo(append(separate(dst, from), key...)), '"')
	}
	if e.port > 0 {
		dst = strconv.AppendUint(append(separate(dst, from), `"port":`...), uint64(e.port), 10)
	}
	return append(dst, '}')
}

// separate appends a comma, unless the list that begins at from is empty.
func separate(dst []byte, from int) []byte {
	if len(dst) > from {
		return append(dst, ',')
	}
	return dst
}

func (z *outSpan) appendAnnotations(dst []byte) []byte {
	if len(z.annotations) == 0 {
		return dst
	}
	dst = append(dst, `,"annotations":[`...)
	from := len(dst)
	for _, a := range z.annotations {
		dst = strconv.AppendUint(append(separate(dst, from), `{"timestamp":`...), a.timestamp, 10)
		dst = append(otlpdata.AppendJSONString(append(dst, `,"value":`...), a.value), '}')
	}
	return append(dst, ']')
}

func (z *outSpan) appendTags(dst []byte) []byte {
	if len(z.tags) == 0 {
		return dst
	}
	dst = append(dst, `,"tags":{`...)
	from := len(dst)
	for _, t := range z.tags {
		dst = append(otlpdata.AppendJSONString(separate(dst, from), t.key), ':')
		dst = otlpdata.AppendJSONString(dst, t.value)
	}
	return append(dst, '}')
}
