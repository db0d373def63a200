// Package zipkin translates Zipkin's wire formats into OTLP bytes.
//
// Of v2 spans, everything is kept but two things: that a span is shared, which its id and kind tell as well, and the IPv4 address of an
// endpoint that has an IPv6 address, too.
package zipkin

import (
	"time"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Options are what the request says beside its body, and what the receiver is configured to do.
type Options struct {
	Debug           bool      // the header X-B3-Flags: 1
	ParseStringTags bool      // make numbers and booleans of tags that look like them
	Now             time.Time // start of v1 spans that tell no time at all
	// Limits bound requests while they are translated; of them, only Spans and Items are used. Zero means the default. An error for
	// them is a *[otlpdata.LimitError].
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
