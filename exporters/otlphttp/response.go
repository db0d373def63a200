package otlphttp

import (
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strings"
	"time"

	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/client"
)

// maxMessage is the maximum length of a message quoted in an error, in bytes.
const maxMessage = 1 << 10

// responseError returns the error for an unsuccessful response, with the class defined by the OTLP
// specification: only 429, 502, 503 and 504 may be retried.
func responseError(r client.Response, now time.Time) error {
	err := errors.New(strings.TrimSpace(fmt.Sprintf("%d %s", r.Status, http.StatusText(r.Status))))
	if m := errorMessage(r); m != "" {
		err = fmt.Errorf("%w: %s", err, m)
	}
	after, requested := client.RetryAfter(r.Header, now)
	switch {
	case r.Status == http.StatusTooManyRequests, r.Status == http.StatusServiceUnavailable && requested:
		return pipeline.Overloaded(err, after)
	case r.Status == http.StatusBadGateway, r.Status == http.StatusServiceUnavailable, r.Status == http.StatusGatewayTimeout:
		return err
	}
	return pipeline.Permanent(err)
}

// errorMessage returns the message of the next hop, from a google.rpc.Status or plain text, or "".
func errorMessage(r client.Response) string {
	var s spb.Status
	fromProto := func(b []byte) error { return proto.Unmarshal(b, &s) }
	fromJSON := func(b []byte) error { return protojson.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(b, &s) }
	text := ""
	if decode(r, fromProto, fromJSON) == nil {
		text = s.GetMessage()
	} else if mediaType(r) == "text/plain" {
		text = strings.TrimSpace(string(r.Body))
	}
	if len(text) > maxMessage {
		text = text[:maxMessage] + "..."
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}

// decode decodes the body according to its media type. An empty body is an empty message.
func decode(r client.Response, fromProto, fromJSON func([]byte) error) error {
	if len(r.Body) == 0 {
		return nil
	}
	switch t := mediaType(r); t {
	case typeProto:
		return fromProto(r.Body)
	case typeJSON:
		return fromJSON(r.Body)
	default:
		return fmt.Errorf("unexpected media type %q", t)
	}
}

// mediaType returns the media type without parameters, or "".
func mediaType(r client.Response) string {
	t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		return ""
	}
	return t
}
