package traces

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/tracing-backend/tracing/pipeline"
)

const (
	// maxErrorBody is the maximum number of bytes read from an error response.
	maxErrorBody = 64 << 10
	// maxQuoted is the maximum number of bytes quoted from an unexpected response.
	maxQuoted = 300
	// defaultMaxAnswer is enough for a trace with the default maximum number of spans of the
	// service.
	defaultMaxAnswer = 512 << 20
	defaultTimeout   = time.Minute
)

// client sends requests to a query service.
type client struct {
	base      string // without trailing slash
	header    http.Header
	timeout   time.Duration
	maxAnswer int64
	transport http.RoundTripper
}

// get sends a GET request and calls read with the body of the response. Status codes other than
// 200, truncated bodies and bodies longer than maxAnswer are errors.
func (c *client) get(ctx context.Context, path string, query url.Values, read func(io.Reader) error) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	target := c.base + path
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return err
	}
	maps.Copy(req.Header, c.header)
	resp, err := c.transport.RoundTrip(req) // does not follow redirects, because headers may hold secrets
	if err != nil {
		return c.unreachable(ctx, err)
	}
	defer resp.Body.Close() //nolint:errcheck // only read
	if resp.StatusCode != http.StatusOK || isPage(resp) {
		return c.responseError(resp)
	}
	body := &limitedBody{r: resp.Body, left: c.maxAnswer}
	switch err := read(body); {
	case err == nil:
		return nil
	case errors.Is(err, errOutput):
		return err
	case errors.Is(body.err, errTooLong):
		return fmt.Errorf("response of %s is longer than %s; increase --max-answer", c.base, pipeline.ByteSize(c.maxAnswer))
	case body.err != nil && !errors.Is(body.err, io.EOF):
		return fmt.Errorf("reading response of %s: %w", c.base, c.timeoutError(ctx, body.err))
	default:
		return fmt.Errorf("decoding response of %s: %w", c.base, cleanError(err))
	}
}

// errOutput marks errors of writing the output.
var errOutput = errors.New("writing")

var errTooLong = errors.New("too long")

// limitedBody is a reader with a maximum length. It keeps the error that ended reading.
type limitedBody struct {
	r    io.Reader
	left int64
	err  error
}

// Read implements io.Reader.
func (b *limitedBody) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	n, err := b.r.Read(p[:min(int64(len(p)), b.left+1)])
	if b.left -= int64(n); b.left < 0 {
		n, err = n-1, errTooLong
	}
	b.err = err
	return n, err
}

// timeoutError replaces the error of a request that timed out.
func (c *client) timeoutError(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("no response within %s; increase --timeout", c.timeout)
	}
	return err
}

// unreachable returns the error for a request without a response.
func (c *client) unreachable(ctx context.Context, err error) error {
	if errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("cannot connect to %s: %w; check that the query service runs there, or set --query", c.base, err)
	}
	return fmt.Errorf("requesting %s: %w", c.base, c.timeoutError(ctx, err))
}

// isPage reports whether the response is an HTML page, such as the login page of a proxy.
func isPage(resp *http.Response) bool {
	media, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	return err == nil && media == "text/html"
}

// statusError is a response with an error status, or not from the API.
type statusError struct {
	status  int
	msg     string
	unknown bool // the path does not seem to belong to the API
}

// Error implements error.
func (e *statusError) Error() string { return fmt.Sprintf("status %d: %s", e.status, e.msg) }

// responseError returns the error for a response with an error status or an HTML page.
func (c *client) responseError(resp *http.Response) error {
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	if err != nil {
		return fmt.Errorf("status %d; reading the response failed: %w", resp.StatusCode, err)
	}
	e := &statusError{status: resp.StatusCode, msg: messageOf(body)}
	text := quoted(body)
	switch {
	case e.msg != "":
	case resp.Header.Get("Location") != "":
		e.msg = "redirected to " + clean(resp.Header.Get("Location"))
	case e.status == http.StatusNotFound || e.status == http.StatusOK:
		e.unknown = true
		e.msg = fmt.Sprintf("%s is not a query service; check the base path", c.base)
	case text == "" || isPage(resp):
		e.msg = http.StatusText(e.status)
	default:
		e.msg = text
	}
	if after := resp.Header.Get("Retry-After"); after != "" {
		e.msg += "; retry after " + clean(after) + " s"
	}
	return e
}

// messageOf returns the error messages of an API response, of version 2 or 3; "" if it is not from
// the API.
func messageOf(body []byte) string {
	var envelope struct {
		Errors []apiError `json:"errors"`
		Error  struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	if json.NewDecoder(bytes.NewReader(body)).Decode(&envelope) != nil {
		return ""
	}
	var all []string
	for _, e := range envelope.Errors {
		all = append(all, clean(e.String()))
	}
	if msg := envelope.Error.Message; msg != "" {
		all = append(all, clean(msg))
	}
	return strings.Join(all, "; ")
}

func quoted(body []byte) string {
	text := strings.TrimSpace(string(body))
	return clean(strings.ToValidUTF8(text[:min(len(text), maxQuoted)], ""))
}

// cleanError makes an error text, which may quote a response, printable.
func cleanError(err error) error {
	if text := err.Error(); !isClean(text) {
		return errors.New(clean(text))
	}
	return err
}
