// Package zipkin translates Zipkin's wire formats into OTLP bytes, and batches into v2 spans.
//
// The translation of v2 spans keeps everything except two things: whether a span is shared, which
// its id and kind also tell, and the IPv4 address of an endpoint that also has an IPv6 address.
package zipkin

import (
	"time"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Options are the parts of a request outside of its body, and the configuration of the receiver.
type Options struct {
	Debug           bool      // header X-B3-Flags: 1
	ParseStringTags bool      // convert tags that look like numbers or booleans
	Now             time.Time // start of v1 spans without any time
	// Limits are checked during the translation. Only Spans and Items are used. 0 means the
	// default. The error of an exceeded limit is a *[otlpdata.LimitError].
	Limits otlpdata.Limits
}

// All functions return an encoded ExportTraceServiceRequest, which the caller owns.

// FromV2JSON translates a JSON array of v2 spans.
func FromV2JSON(b []byte, opt Options) ([]byte, error) {
	return translate(b, &opt, (*translator).readJSON)
}

// FromV2Proto translates a ListOfSpans of zipkin.proto3.
func FromV2Proto(b []byte, opt Options) ([]byte, error) {
	return translate(b, &opt, (*translator).readProto)
}
