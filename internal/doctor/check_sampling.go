package doctor

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"time"

	"google.golang.org/grpc"

	"github.com/tracing-backend/tracing/internal/wire/api_v2"
	"github.com/tracing-backend/tracing/pipeline"
)

// serviceName is the service of test spans, for which strategies are requested.
const serviceName = "tracing-doctor"

// checkSampling asks each listener that serves sampling strategies.
func checkSampling(ctx context.Context, x *examination) []Finding {
	var found []Finding
	for i := range x.listeners {
		l := &x.listeners[i]
		ask := samplingClient(l)
		switch {
		case ask == nil:
		case !x.process.running:
			found = append(found, newFinding(l.String(), Skipped, "process is not running"))
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

// strategyRequest requests the strategy of a service, and describes the answer.
type strategyRequest func(ctx context.Context, x *examination, l *listener) (string, error)

// samplingClient returns how clients ask a listener for strategies, or nil if it serves none.
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
	strategy, err := ask(ctx, x, l)
	if err != nil {
		return newFinding(l.String(), Problem, "no sampling strategy: %v", err).
			advise("look at the extension sampling: its file, URL or collector; \"tracing sampling explain\" shows more")
	}
	return newFinding(l.String(), OK, "%s; answered in %s", strategy, roundTime(time.Since(began)))
}

func strategyHTTP(path string) strategyRequest {
	return func(ctx context.Context, x *examination, l *listener) (string, error) {
		body, err := x.get(ctx, l.url()+path+"?service="+url.QueryEscape(serviceName), x.headerFor(l))
		if err != nil {
			return "", err
		}
		var answer struct {
			Type string `json:"strategyType"`
		}
		if err := json.Unmarshal(body, &answer); err != nil || answer.Type == "" {
			return "", fmt.Errorf("answer is not a strategy: %s", body[:min(len(body), maxQuoted)])
		}
		var compact bytes.Buffer
		if err := json.Compact(&compact, body); err != nil {
			return "", err
		}
		return string(compact.Bytes()[:min(compact.Len(), maxQuoted)]), nil
	}
}

func strategyGRPC(ctx context.Context, x *examination, l *listener) (string, error) {
	conn, err := x.dial(l)
	if err != nil {
		return "", err
	}
	defer conn.Close() //nolint:errcheck // everything needed has been read
	answer, err := api_v2.NewSamplingManagerClient(conn).GetSamplingStrategy(x.outgoing(ctx, l),
		&api_v2.SamplingStrategyParameters{ServiceName: serviceName}, grpc.WaitForReady(true))
	if err != nil {
		return "", err
	}
	if p := answer.GetProbabilisticSampling(); p != nil {
		return fmt.Sprintf("%s, sampling rate %g", answer.GetStrategyType(), p.GetSamplingRate()), nil
	}
	return answer.GetStrategyType().String(), nil
}
