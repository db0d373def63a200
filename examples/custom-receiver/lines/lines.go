// Package lines is a receiver of spans as lines of text over HTTP, for shell scripts and cron jobs:
//
//	curl --data 'backup copy 5300' localhost:4320
//
// A line is `service operation duration_ms`. It becomes a trace of one span that ended when the
// request arrived. The response is `ok`, or what is wrong.
package lines

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/server"
)

type config struct {
	server.HTTPConfig
	MaxDuration pipeline.Duration `yaml:"max_duration" doc:"Maximum span duration accepted."`
}

func defaults() config {
	c := config{HTTPConfig: server.DefaultHTTPConfig("localhost:4320"), MaxDuration: pipeline.Duration(24 * time.Hour)}
	c.MaxRequestBodySize = 64 << 10
	return c
}

// Validate checks max_duration. The keys of the listener are checked separately.
func (c *config) Validate() error {
	if c.MaxDuration <= 0 {
		return pipeline.BadKey("max_duration", "must be above 0; otherwise every line is refused")
	}
	return nil
}

// Factory returns the factory of receivers of type lines.
func Factory() pipeline.Factory {
	return pipeline.Receiver("lines", defaults, newReceiver).
		Doc("Accepts spans as lines of text over HTTP: service, operation and duration in milliseconds.")
}

// receiver has Start, HandOver and Stop from the server that it embeds.
type receiver struct {
	*server.HTTP
	set         pipeline.Settings
	next        pipeline.Consumer
	maxDuration time.Duration
}

var (
	_ pipeline.Stopper   = (*receiver)(nil)
	_ pipeline.Addressed = (*receiver)(nil)
)

func newReceiver(set pipeline.Settings, c config, next pipeline.Consumer) (*receiver, error) {
	r := &receiver{set: set, next: next, maxDuration: c.MaxDuration.Std()}
	var err error
	r.HTTP, err = server.NewHTTP(set, "http", c.HTTPConfig, r)
	return r, err
}

// Addr returns the address of the only listener.
func (r *receiver) Addr(string) string { return r.HTTP.Addr() }

// ServeHTTP passes the spans of a request on and responds with the outcome.
func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) { reply(w, r.take(req)) }

// bytesPerSpan is the memory of the objects of a span, without the text of the line.
const bytesPerSpan = 2048

// take passes the spans of a request on.
func (r *receiver) take(req *http.Request) error {
	body, err := server.ReadBody(req) // charged to the budget until ServeHTTP returns
	if err != nil {
		return err
	}
	lines, err := parseLines(string(body), r.maxDuration)
	if err != nil {
		r.CountRefused(server.ReasonUndecodable)
		return pipeline.Permanent(err)
	}
	memory, err := r.set.Budget.Reserve(int64(len(lines)) * bytesPerSpan)
	if err != nil {
		r.CountRefused(server.ReasonOverBudget)
		return err
	}
	defer memory.Release()

	now := r.set.Env.Now()
	meta := otlpdata.Meta{Tenant: server.Tenant(req.Context()), Format: "lines", Transport: "http", Received: now}
	return r.next.Consume(req.Context(), otlpdata.FromTraces(traces(lines, now, r.set.Env.Rand), meta))
}

// reply writes the response for an error of Consume. The status and Retry-After tell clients
// whether, and when, to resend the lines. A Partial is a success: with another status, the client
// would resend the accepted lines.
func reply(w http.ResponseWriter, err error) {
	text := "ok"
	if err != nil {
		text = err.Error()
	}
	if partial := (*pipeline.Partial)(nil); errors.As(err, &partial) {
		err = nil
	}
	code := server.ErrorStatus(w.Header(), err)
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(code)
	io.WriteString(w, fmt.Sprintln(text)) //nolint:errcheck // the client is gone
}
