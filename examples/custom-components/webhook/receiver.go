package webhook

import (
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"strconv"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/server"
)

type receiverConfig struct{ server.HTTPConfig }

func receiverDefaults() receiverConfig {
	return receiverConfig{server.DefaultHTTPConfig("localhost:4321")}
}

// ReceiverFactory returns the factory of receivers of type webhook.
func ReceiverFactory() pipeline.Factory {
	return pipeline.Receiver("webhook", receiverDefaults, newReceiver).Doc("Accepts spans of exporters of type webhook.")
}

// receiver has Start, HandOver and Stop from the server that it embeds.
type receiver struct {
	*server.HTTP
	set  pipeline.Settings
	next pipeline.Consumer
}

var (
	_ pipeline.Stopper   = (*receiver)(nil)
	_ pipeline.Addressed = (*receiver)(nil)
)

func newReceiver(set pipeline.Settings, c receiverConfig, next pipeline.Consumer) (*receiver, error) {
	r := &receiver{set: set, next: next}
	var err error
	r.HTTP, err = server.NewHTTP(set, "http", c.HTTPConfig, r)
	return r, err
}

// Addr returns the address of the only listener.
func (r *receiver) Addr(string) string { return r.HTTP.Addr() }

// ServeHTTP passes the spans of a request on and responds with the outcome.
func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) { reply(w, r.take(req)) }

func (r *receiver) take(req *http.Request) error {
	body, err := server.ReadBody(req) // charged to the budget until ServeHTTP returns
	if err != nil {
		return err
	}
	meta := otlpdata.Meta{Tenant: server.Tenant(req.Context()), Format: "otlp", Transport: "http", Received: r.set.Env.Now()}
	b, err := otlpdata.FromOTLP(body, meta, otlpdata.Limits{})
	if err != nil {
		r.CountRefused(server.ReasonUndecodable)
		return pipeline.Permanent(err)
	}
	return r.next.Consume(req.Context(), b)
}

// reply writes the response for an error of Consume. A Partial is a success: with another status,
// the client would resend the accepted spans, or give up on all of them.
func reply(w http.ResponseWriter, err error) {
	var a answer
	if partial := (*pipeline.Partial)(nil); errors.As(err, &partial) {
		a, err = answer{Rejected: int64(partial.Rejected), Error: partial.Error()}, nil
	} else if err != nil {
		a.Error = err.Error()
	}
	code, after := pipeline.HTTPStatus(err)
	if after > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(after.Seconds()))))
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	json.NewEncoder(w).Encode(a) //nolint:errcheck // the client is gone
}
