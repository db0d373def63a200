// Package lines is a receiver of spans as lines of text, for shell scripts and cron jobs:
//
//	printf 'backup copy 5300\n' | curl --data-binary @- http://localhost:4320
//
// A line is `service operation duration_ms`, and becomes a span of its own trace which ended when the line came. A request may have many
// lines; the answer has one for each: `ok`, or what is wrong with it.
package lines

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/server"
)

type config struct {
	server.HTTPConfig
	MaxLines int `yaml:"max_lines" doc:"Greatest number of lines in one request."`
}

func defaults() config {
	return config{HTTPConfig: server.DefaultHTTPConfig("localhost:4320"), MaxLines: 10_000}
}

// Validate checks the keys that are not the listener's.
func (c *config) Validate() error {
	if c.MaxLines < 1 || c.MaxLines > math.MaxInt32 {
		return pipeline.BadKey("max_lines", "must be from 1 to %d, not %d", math.MaxInt32, c.MaxLines)
	}
	return nil
}

// Factory makes receivers of type lines.
func Factory() pipeline.Factory {
	return pipeline.Receiver("lines", defaults, newReceiver).
		Doc("Accepts spans as lines of text over HTTP: service, operation and duration in milliseconds.")
}

// receiver listens, stops and drains as the server does that it embeds.
type receiver struct {
	*server.HTTP
	set      pipeline.Settings
	next     pipeline.Consumer
	maxLines int
}

var (
	_ pipeline.Stopper   = (*receiver)(nil)
	_ pipeline.Addressed = (*receiver)(nil)
)

func newReceiver(set pipeline.Settings, c config, next pipeline.Consumer) (*receiver, error) {
	r := &receiver{set: set, next: next, maxLines: c.MaxLines}
	var err error
	r.HTTP, err = server.NewHTTP(set, "http", c.HTTPConfig, r)
	return r, err
}

// Addr returns the address of the one listener, whatever it is called.
func (r *receiver) Addr(string) string { return r.HTTP.Addr() }

// ServeHTTP takes the lines of one request.
func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if req.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "send lines with POST", http.StatusMethodNotAllowed)
		return
	}
	body, err := server.ReadBody(req)
	if err != nil {
		refuse(w, err)
		return
	}
	answers, err := r.take(req.Context(), body)
	if err != nil {
		refuse(w, err)
		return
	}
	io.WriteString(w, answers) //nolint:errcheck // the client is gone, nothing is left to tell it
}

// bytesPerLine is what a line may cost in memory beside its text: the objects of a span, and the answer.
const bytesPerLine = 2048

// take hands on the spans of all lines that can be read, and returns an answer for each line. An error is about all of them.
func (r *receiver) take(ctx context.Context, body []byte) (answers string, err error) {
	body = bytes.TrimSuffix(body, []byte("\n"))
	lines := bytes.Count(body, []byte("\n")) + 1
	if lines > r.maxLines {
		r.Refused(server.ReasonTooLarge)
		return "", &otlpdata.LimitError{Limit: "lines in one request", Max: r.maxLines, TooLarge: true}
	}
	memory, err := r.set.Budget.Reserve(int64(lines)*bytesPerLine + int64(len(body)))
	if err != nil {
		r.Refused(server.ReasonOverBudget)
		return "", err
	}
	defer memory.Release()

	now := r.set.Env.Now()
	spans, answers := parse(body, now, r.set.Env.Rand)
	if spans.SpanCount() == 0 {
		r.Refused(server.ReasonUndecodable)
		return "", pipeline.Permanent(errors.New(cmp.Or(answers, "no lines; "+formatHint)))
	}
	meta := otlpdata.Meta{Tenant: server.Tenant(ctx), Format: "lines", Transport: "http", Received: now}
	err = r.next.Consume(ctx, otlpdata.FromTraces(spans, meta))
	if partial := (*pipeline.Partial)(nil); errors.As(err, &partial) {
		return answers + partial.Error() + "\n", nil // the rest was taken: this must not look like a failure
	}
	return answers, err
}

// refuse answers with the status of the error's class: clients see from it whether, and when, to try again.
func refuse(w http.ResponseWriter, err error) {
	code, after := pipeline.HTTPStatus(err)
	if after > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(after.Seconds()))))
	}
	http.Error(w, strings.TrimSuffix(err.Error(), "\n"), code)
}
