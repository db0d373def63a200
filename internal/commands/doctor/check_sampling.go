package doctor

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"reflect"
	"strings"
	"time"

	"google.golang.org/grpc"

	"github.com/tracing-backend/tracing/internal/wire/api_v2"
	"github.com/tracing-backend/tracing/pipeline"
)

// serviceName is the service of test spans, and the service for which strategies are requested.
const serviceName = "tracing-doctor"

// checkSampling requests a strategy from each listener that serves sampling strategies.
func checkSampling(ctx context.Context, x *examination) []Finding {
	found := x.zeroRates()
	for i := range x.listeners {
		l := &x.listeners[i]
		ask := samplingClient(l)
		switch {
		case ask == nil:
		case !x.process.running:
			found = append(found, newFinding(l.String(), Skipped, "%s", x.process.absence()))
		case x.unauthenticated(l) != "":
			found = append(found, newFinding(l.String(), Skipped, "%s", x.unauthenticated(l)))
		default:
			found = append(found, x.askStrategy(ctx, l, ask))
		}
	}
	if len(found) == 0 {
		found = append(found, newFinding("", Skipped, "configuration serves no sampling strategies"))
	}
	return found
}

// zeroRates returns the settings that drop every trace.
func (x *examination) zeroRates() (found []Finding) {
	for _, c := range x.used {
		at := map[string]string{"probabilistic_sampler": "sampling_percentage",
			"sampling": "file::default_sampling_probability"}[c.Factory.Type()]
		file := text(c, "file::path")
		c.Walk(func(path []string, field any, _ reflect.StructTag) {
			if rate, ok := field.(*float64); ok && *rate == 0 && strings.Join(path, "::") == at && file == "" {
				found = append(found, newFinding(key(c)+"::"+at, Warning, "is 0: no trace is kept").advise("set it above 0, or remove %s", key(c)))
			}
		})
	}
	return found
}

// strategy is the response to a client.
type strategy struct {
	text string
	none bool // no trace is sampled
}

// strategyRequest requests the strategy of a service.
type strategyRequest func(ctx context.Context, x *examination, l *listener) (strategy, error)

// samplingClient returns how clients request strategies from a listener, or nil if it serves none.
func samplingClient(l *listener) strategyRequest {
	switch {
	case l.is(pipeline.KindExtension, "sampling", "http"):
		return strategyHTTP("/sampling")
	case l.is(pipeline.KindExtension, "sampling", "grpc"):
		return strategyGRPC
	case len(l.component.References) == 0: // a native receiver without `sampling`
		return nil
	case l.is(pipeline.KindReceiver, "native", "protocols::http"):
		return strategyHTTP("/api/sampling")
	case l.is(pipeline.KindReceiver, "native", "protocols::grpc"):
		return strategyGRPC
	}
	return nil
}

func (x *examination) askStrategy(ctx context.Context, l *listener, ask strategyRequest) Finding {
	began := time.Now()
	s, err := ask(ctx, x, l)
	if err != nil {
		return newFinding(l.String(), Problem, "no sampling strategy: %v", err).
			advise("look at the sampling extension: its file, URL or collector; \"tracing sampling explain\" shows more")
	}
	if s.none {
		return newFinding(l.String(), Warning, "%s: clients of the service %s record no trace", s.text, serviceName).
			advise("set a rate above 0 for this service or as the default; \"tracing sampling explain\" shows where the rate comes from")
	}
	return newFinding(l.String(), OK, "%s; responded in %s", s.text, roundTime(time.Since(began)))
}

func strategyHTTP(path string) strategyRequest {
	return func(ctx context.Context, x *examination, l *listener) (s strategy, err error) {
		body, err := x.get(ctx, l.url()+path+"?service="+url.QueryEscape(serviceName), x.headerFor(l))
		if err != nil {
			return s, err
		}
		var answer strategyJSON
		if err := json.Unmarshal(body, &answer); err != nil || answer.Type == "" {
			return s, fmt.Errorf("response is not a strategy: %s", body[:min(len(body), maxQuoted)])
		}
		var compact bytes.Buffer
		if err := json.Compact(&compact, body); err != nil {
			return s, err
		}
		return strategy{string(compact.Bytes()[:min(compact.Len(), maxQuoted)]), answer.samplesNothing()}, nil
	}
}

// strategyJSON is the part of a strategy with rates.
type strategyJSON struct {
	Type          string `json:"strategyType"`
	Probabilistic struct {
		Rate float64 `json:"samplingRate"`
	} `json:"probabilisticSampling"`
	RateLimiting struct {
		PerSecond float64 `json:"maxTracesPerSecond"`
	} `json:"rateLimitingSampling"`
	Operations *json.RawMessage `json:"operationSampling"`
}

// samplesNothing reports whether no rate is above 0, including the rates of single operations.
func (s *strategyJSON) samplesNothing() bool {
	return s.Operations == nil && s.Probabilistic.Rate == 0 && s.RateLimiting.PerSecond == 0
}

func strategyGRPC(ctx context.Context, x *examination, l *listener) (s strategy, err error) {
	conn, err := x.dial(l)
	if err != nil {
		return s, err
	}
	defer conn.Close() //nolint:errcheck // everything needed has been read
	answer, err := api_v2.NewSamplingManagerClient(conn).GetSamplingStrategy(x.outgoing(ctx, l),
		&api_v2.SamplingStrategyParameters{ServiceName: serviceName}, grpc.WaitForReady(true))
	if err != nil {
		return s, err
	}
	s.text = answer.GetStrategyType().String()
	if p := answer.GetProbabilisticSampling(); p != nil {
		s.text += fmt.Sprintf(", sampling rate %g", p.GetSamplingRate())
	}
	s.none = answer.GetOperationSampling() == nil && answer.GetProbabilisticSampling().GetSamplingRate() == 0 &&
		answer.GetRateLimitingSampling().GetMaxTracesPerSecond() == 0
	return s, nil
}
