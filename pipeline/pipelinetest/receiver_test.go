package pipelinetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/server"
)

// inlet receives OTLP over HTTP, in the smallest way.
type inlet struct {
	*server.HTTP
	stop func(ctx context.Context, stop func(context.Context) error) error
}

func (i *inlet) Addr(string) string { return i.HTTP.Addr() }

func (i *inlet) Stop(ctx context.Context) error { return i.stop(ctx, i.HTTP.Stop) }

var (
	_ pipeline.Addressed = (*inlet)(nil)
	_ pipeline.Stopper   = (*inlet)(nil)
)

// answerer makes the answer to the body of a request.
type answerer func(ctx context.Context, body []byte, next pipeline.Consumer) error

// right is what a receiver does.
func right(ctx context.Context, body []byte, next pipeline.Consumer) error {
	b, err := otlpdata.FromOTLP(body, otlpdata.Meta{Format: "otlp", Transport: "http"}, otlpdata.Limits{})
	if err != nil {
		return pipeline.Permanent(err)
	}
	return next.Consume(ctx, b)
}

func stopAtOnce(ctx context.Context, stop func(context.Context) error) error { return stop(ctx) }

// receiver makes a subject of an inlet.
func receiver(a answerer, stop func(context.Context, func(context.Context) error) error) *subject {
	f := pipeline.Receiver("inlet", func() server.HTTPConfig { return server.DefaultHTTPConfig("localhost:4000") },
		func(set pipeline.Settings, c server.HTTPConfig, next pipeline.Consumer) (*inlet, error) {
			s, err := server.NewHTTP(set, "http", c, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, err := server.ReadBody(r)
				if err == nil {
					err = a(r.Context(), body, next)
				}
				if partialOf(err) != nil {
					err = nil
				}
				code, _ := pipeline.HTTPStatus(err)
				w.WriteHeader(code)
			}))
			return &inlet{s, stop}, err
		})
	return receiverSubject(f.Doc("Receives."), ReceiverOptions{Config: "endpoint: localhost:0", Send: post})
}

// post is a client of an inlet.
func post(ctx context.Context, addr string, td ptrace.Traces) error {
	body, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(td)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+addr, bytes.NewReader(body))
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return err
	}
	switch {
	case resp.StatusCode == http.StatusOK:
		return nil
	case resp.StatusCode == http.StatusTooManyRequests, resp.StatusCode >= http.StatusInternalServerError:
		return errors.New(resp.Status)
	}
	return pipeline.Permanent(errors.New(resp.Status))
}

func TestRightReceiverPasses(t *testing.T) {
	sub := receiver(right, stopAtOnce)
	Receiver(t, sub.factory, ReceiverOptions{Config: "endpoint: localhost:0", Send: sub.send})
}

func TestWrongReceivers(t *testing.T) {
	expect(t, "outcomes are told", receiver(func(ctx context.Context, body []byte, next pipeline.Consumer) error {
		right(ctx, body, next) //nolint:errcheck // that is what is wrong
		return nil
	}, stopAtOnce), "told yes")
	expect(t, "outcomes are told", receiver(func(ctx context.Context, body []byte, next pipeline.Consumer) error {
		return pipeline.Permanent(right(ctx, body, next))
	}, stopAtOnce), "told as permanent")
	expect(t, "outcomes are told", receiver(func(ctx context.Context, body []byte, next pipeline.Consumer) error {
		if err := right(ctx, body, next); partialOf(err) != nil {
			return fmt.Errorf("not all were taken: %s", err)
		} else {
			return err
		}
	}, stopAtOnce), "told to send all again")
	expect(t, "every span arrives once", receiver(func(ctx context.Context, body []byte, next pipeline.Consumer) error {
		return errors.Join(right(ctx, body, next), right(ctx, body, next))
	}, stopAtOnce), "arrived 2 times")
	expect(t, "every span arrives once", receiver(func(ctx context.Context, body []byte, next pipeline.Consumer) error {
		b, err := otlpdata.FromOTLP(body, otlpdata.Meta{}, otlpdata.Limits{})
		if err != nil {
			return err
		}
		return next.Consume(ctx, b)
	}, stopAtOnce), "does not say its format")
}

// A receiver that answers nothing is held to what it has taken when it stops.
func TestUnansweredReceivers(t *testing.T) {
	var lose atomic.Bool
	silent := func(send func(context.Context, string, ptrace.Traces) error) ReceiverOptions {
		return ReceiverOptions{Config: "endpoint: localhost:0", Unanswered: true, Send: func(ctx context.Context, addr string, td ptrace.Traces) error {
			send(ctx, addr, td) //nolint:errcheck // nothing is told
			return nil
		}}
	}
	sub := receiver(right, stopAtOnce)
	Receiver(t, sub.factory, silent(post))
	lossy := receiverSubject(sub.factory, silent(func(ctx context.Context, addr string, td ptrace.Traces) error {
		if lose.CompareAndSwap(false, true) {
			return nil
		}
		return post(ctx, addr, td)
	}))
	expect(t, "every span has arrived by the end", lossy, "did not arrive")
}

// The next request is read into the memory of the one before.
func TestReceiverThatKeepsABuffer(t *testing.T) {
	var mu sync.Mutex
	var buf []byte
	expect(t, "batches stay as they are", receiver(func(ctx context.Context, body []byte, next pipeline.Consumer) error {
		mu.Lock()
		defer mu.Unlock()
		buf = append(buf[:0], body...)
		return right(ctx, buf, next)
	}, stopAtOnce), "passed on by the component")
}

// While it stops, it says yes to everything.
func TestReceiverThatLosesSpansWhenItStops(t *testing.T) {
	stopping, lied := make(chan struct{}), make(chan struct{})
	var once sync.Once
	expect(t, "stops under load", receiver(func(ctx context.Context, body []byte, next pipeline.Consumer) error {
		select {
		case <-stopping:
			once.Do(func() { close(lied) })
			return nil
		default:
			return right(ctx, body, next)
		}
	}, func(ctx context.Context, stop func(context.Context) error) error {
		close(stopping)
		<-lied
		return stop(ctx)
	}), "did not arrive")
}

// It cuts calls off and does not say so.
func TestReceiverThatDoesNotReportWhatItLeft(t *testing.T) {
	expect(t, "stops at the deadline", receiver(right, func(ctx context.Context, stop func(context.Context) error) error {
		stop(ctx) //nolint:errcheck // that is what is wrong
		return nil
	}), "returned nil")
}
