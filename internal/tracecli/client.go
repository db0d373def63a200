package tracecli

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
	// maxErrorBody is how much is read of an answer that is an error, in bytes.
	maxErrorBody = 64 << 10
	// maxQuoted is how much is quoted of an answer that is not understood, in bytes.
	maxQuoted = 300
	// defaultMaxAnswer is enough for a trace of as many spans as the service shows by default.
	defaultMaxAnswer = 512 << 20
	defaultTimeout   = time.Minute
)

// client asks a query service.
type client struct {
	base      string // without a slash at the end
	header    http.Header
	timeout   time.Duration
	maxAnswer int64
	transport http.RoundTripper
}

// get asks for a path, and lets read have the body of an answer with status 200. Other answers are errors, as are those that end too early
// or are too long.
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
	resp, err := c.transport.RoundTrip(req) // redirects are not followed, since headers may hold secrets
	if err != nil {
		return c.unreachable(ctx, err)
	}
	defer resp.Body.Close() //nolint:errcheck // all that matters was read
	if resp.StatusCode != http.StatusOK || isPage(resp) {
		return c.refusal(resp)
	}
	body := &bounded{r: resp.Body, left: c.maxAnswer}
	switch err := read(body); {
	case err == nil:
		return nil
	case errors.Is(err, errOutput):
		return err
	case errors.Is(body.err, errTooLong):
		return fmt.Errorf("the answer of %s is longer than %s; --max-answer allows more", c.base, pipeline.ByteSize(c.maxAnswer))
	case body.err != nil && !errors.Is(body.err, io.EOF):
		return fmt.Errorf("reading the answer of %s: %w", c.base, c.late(ctx, body.err))
	default:
		return fmt.Errorf("the answer of %s cannot be read: %w", c.base, cleanError(err))
	}
}

// errOutput is an error of writing, not of reading.
var errOutput = errors.New("writing")

var errTooLong = errors.New("too long")

// bounded is a body of limited length, and keeps the error that ended it.
type bounded struct {
	r    io.Reader
	left int64
	err  error
}

// Read implements io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
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

// late replaces the error of a request that took too long.
func (c *client) late(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("no answer within %s; --timeout allows more", c.timeout)
	}
	return err
}

// unreachable says why there was no answer.
func (c *client) unreachable(ctx context.Context, err error) error {
	if errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("nothing listens at %s (%w): is the query service running there? --query URL names another place", c.base, err)
	}
	return fmt.Errorf("asking %s: %w", c.base, c.late(ctx, err))
}

// isPage says whether the answer is for browsers: a proxy asks for a login, or a page is served where there is no API.
func isPage(resp *http.Response) bool {
	media, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	return err == nil && media == "text/html"
}

// statusError is an answer that is none of the API's success.
type statusError struct {
	status  int
	msg     string
	unknown bool // the path is none of the API, as far as can be told
}

// Error implements error.
func (e *statusError) Error() string { return fmt.Sprintf("status %d: %s", e.status, e.msg) }

// refusal reads an answer that has another status, or is a page.
func (c *client) refusal(resp *http.Response) error {
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	if err != nil {
		return fmt.Errorf("status %d, and reading the answer failed: %w", resp.StatusCode, err)
	}
	e := &statusError{status: resp.StatusCode, msg: messageOf(body)}
	text := quoted(body)
	switch {
	case e.msg != "":
	case resp.Header.Get("Location") != "":
		e.msg = "redirected to " + clean(resp.Header.Get("Location"))
	case e.status == http.StatusNotFound || e.status == http.StatusOK:
		e.unknown = true
		e.msg = fmt.Sprintf("%s is not the address of a query API; it may need a base path", c.base)
	case text == "" || isPage(resp):
		e.msg = http.StatusText(e.status)
	default:
		e.msg = text
	}
	if after := resp.Header.Get("Retry-After"); after != "" {
		e.msg += "; try again after " + clean(after) + " s"
	}
	return e
}

// messageOf returns what an error of the API says, of either version; "" for an answer of something else.
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

// cleanError is an error whose text quotes an answer.
func cleanError(err error) error {
	if text := err.Error(); !isClean(text) {
		return errors.New(clean(text))
	}
	return err
}
