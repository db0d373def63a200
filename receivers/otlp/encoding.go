package otlp

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"

	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// encoding is a form in which HTTP clients may send spans; they are answered in the same.
type encoding struct {
	mediaType string
	decode    func([]byte, otlpdata.Meta, otlpdata.Limits) (*otlpdata.Batch, error)
	objects   func(body []byte) int64 // bytes of memory that decode takes besides the body
	response  func(ptraceotlp.ExportResponse) ([]byte, error)
	status    func(*spb.Status) ([]byte, error)
}

var (
	protoEncoding = encoding{
		mediaType: "application/x-protobuf",
		decode:    otlpdata.FromOTLP,
		objects:   func([]byte) int64 { return 0 },
		response:  ptraceotlp.ExportResponse.MarshalProto,
		status:    func(s *spb.Status) ([]byte, error) { return proto.Marshal(valid(s)) },
	}
	jsonEncoding = encoding{
		mediaType: "application/json",
		decode:    otlpdata.FromJSON,
		objects:   jsonObjects,
		response:  ptraceotlp.ExportResponse.MarshalJSON,
		status:    marshalStatusJSON,
	}
)

// marshalStatusJSON takes out the spaces, which protojson puts in at random.
func marshalStatusJSON(s *spb.Status) ([]byte, error) {
	b, err := protojson.Marshal(valid(s))
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = json.Compact(&out, b)
	return out.Bytes(), err
}

// valid makes the message text that protobuf takes: errors may quote what clients sent.
func valid(s *spb.Status) *spb.Status {
	s.Message = strings.ToValidUTF8(s.Message, "\uFFFD")
	return s
}

// outcome makes the answer to a request that was consumed: partial success is success.
func outcome(err error) (ptraceotlp.ExportResponse, error) {
	resp := ptraceotlp.NewExportResponse()
	var partial *pipeline.Partial
	if errors.As(err, &partial) {
		resp.PartialSuccess().SetRejectedSpans(int64(partial.Rejected))
		if partial.Err != nil {
			resp.PartialSuccess().SetErrorMessage(strings.ToValidUTF8(partial.Err.Error(), "\uFFFD"))
		}
		return resp, nil
	}
	return resp, err
}
