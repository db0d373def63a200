package otlp

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"

	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// encoding is an encoding of HTTP requests. Responses use the encoding of the request.
type encoding struct {
	mediaType string
	decode    func([]byte, otlpdata.Meta, otlpdata.Limits) (*otlpdata.Batch, error)
	memory    func(body []byte) int64 // maximum memory of decode in bytes, without the body
	status    func(*spb.Status) ([]byte, error)
}

var (
	protoEncoding = encoding{
		mediaType: "application/x-protobuf",
		decode:    otlpdata.FromOTLP,
		memory:    func([]byte) int64 { return 0 },
		status:    func(s *spb.Status) ([]byte, error) { return proto.Marshal(sanitize(s)) },
	}
	jsonEncoding = encoding{
		mediaType: "application/json",
		decode:    otlpdata.FromJSON,
		memory:    otlpdata.JSONMemory,
		status:    marshalStatusJSON,
	}
)

// marshalStatusJSON removes the white space that protojson adds at random.
func marshalStatusJSON(s *spb.Status) ([]byte, error) {
	b, err := protojson.Marshal(sanitize(s))
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = json.Compact(&out, b)
	return out.Bytes(), err
}

// sanitize makes the message valid UTF-8, which protobuf requires. Errors may quote data from
// clients.
func sanitize(s *spb.Status) *spb.Status {
	s.Message = strings.ToValidUTF8(s.Message, "\uFFFD")
	return s
}

// outcome returns the response to a request with the result err of Consume. A partial success is a
// success.
func outcome(err error) (rejected int, message string, _ error) {
	var partial *pipeline.Partial
	if !errors.As(err, &partial) {
		return 0, "", err
	}
	if partial.Err != nil {
		message = strings.ToValidUTF8(partial.Err.Error(), "\uFFFD")
	}
	return partial.Rejected, message, nil
}
