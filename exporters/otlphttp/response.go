package otlphttp

import (
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/client"
)

const (
	// maxRetryAfter limits the delay that a next hop can request.
	maxRetryAfter = 10 * time.Minute
	// maxMessage is the maximum length of a message quoted in an error, in bytes.
	maxMessage = 1 << 10
)

// responseError returns the error for a response without success, with the class defined by the
// OTLP specification: only 429, 502, 503 and 504 may be retried.
func responseError(r client.Response, now time.Time) error {
	err := errors.New(strings.TrimSpace(fmt.Sprintf("%d %s", r.Status, http.StatusText(r.Status))))
	if m := errorMessage(r); m != "" {
		err = fmt.Errorf("%w: %s", err, m)
	}
	after, requested := retryAfter(r.Header.Get("Retry-After"), now)
	switch {
	case r.Status == http.StatusTooManyRequests, r.Status == http.StatusServiceUnavailable && requested:
		return pipeline.Overloaded(err, after)
	case r.Status == http.StatusBadGateway, r.Status == http.StatusServiceUnavailable, r.Status == http.StatusGatewayTimeout:
		return err
	}
	return pipeline.Permanent(err)
}

// retryAfter parses the header Retry-After, which contains seconds or a date.
func retryAfter(value string, now time.Time) (after time.Duration, ok bool) {
	if seconds, err := strconv.ParseUint(value, 10, 64); err == nil {
		return time.Duration(min(seconds, uint64(maxRetryAfter/time.Second))) * time.Second, true
	}
	if date, err := http.ParseTime(value); err == nil {
		return min(max(date.Sub(now), 0), maxRetryAfter), true
	}
	return 0, false
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
