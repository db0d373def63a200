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
	// maxRetryAfter is the longest wait that a next hop can ask for; a longer one is cut.
	maxRetryAfter = 10 * time.Minute
	// maxMessage is how much of an answer is shown in an error, in bytes.
	maxMessage = 1 << 10
)

// refusal returns the error of an answer that is no success, with the class that the OTLP specification gives to its status: 429, 502, 503
// and 504 may be sent again, nothing else.
func refusal(a client.Response, now time.Time) error {
	err := errors.New(strings.TrimSpace(fmt.Sprintf("%d %s", a.Status, http.StatusText(a.Status))))
	if m := message(a); m != "" {
		err = fmt.Errorf("%w: %s", err, m)
	}
	after, asked := retryAfter(a.Header.Get("Retry-After"), now)
	switch {
	case a.Status == http.StatusTooManyRequests, a.Status == http.StatusServiceUnavailable && asked:
		return pipeline.Overloaded(err, after)
	case a.Status == http.StatusBadGateway, a.Status == http.StatusServiceUnavailable, a.Status == http.StatusGatewayTimeout:
		return err
	}
	return pipeline.Permanent(err)
}

// retryAfter reads the header of that name: seconds or a date.
func retryAfter(value string, now time.Time) (after time.Duration, ok bool) {
	if seconds, err := strconv.ParseUint(value, 10, 64); err == nil {
		return time.Duration(min(seconds, uint64(maxRetryAfter/time.Second))) * time.Second, true
	}
	if date, err := http.ParseTime(value); err == nil {
		return min(max(date.Sub(now), 0), maxRetryAfter), true
	}
	return 0, false
}

// message returns what the next hop says about a refusal: the message of a google.rpc.Status, or a text.
func message(a client.Response) string {
	var s spb.Status
	fromProto := func(b []byte) error { return proto.Unmarshal(b, &s) }
	fromJSON := func(b []byte) error { return protojson.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(b, &s) }
	text := ""
	if decode(a, fromProto, fromJSON) == nil {
		text = s.GetMessage()
	} else if mediaType(a) == "text/plain" {
		text = strings.TrimSpace(string(a.Body))
	}
	if len(text) > maxMessage {
		text = text[:maxMessage] + "..."
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}

// decode reads the body of an answer by its media type; an empty body is an empty message.
func decode(a client.Response, fromProto, fromJSON func([]byte) error) error {
	if len(a.Body) == 0 {
		return nil
	}
	switch t := mediaType(a); t {
	case typeProto:
		return fromProto(a.Body)
	case typeJSON:
		return fromJSON(a.Body)
	default:
		return fmt.Errorf("media type %q", t)
	}
}

func mediaType(a client.Response) string {
	t, _, err := mime.ParseMediaType(a.Header.Get("Content-Type"))
	if err != nil {
		return ""
	}
	return t
}
