package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/contrib/samplers/jaegerremote"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// remoteSampler returns the sampler that OTEL_TRACES_SAMPLER=jaeger_remote asks for, with the
// arguments in OTEL_TRACES_SAMPLER_ARG: endpoint=URL,pollingIntervalMs=N,initialSamplingRate=P. The
// SDK for Go does not know this value, and reports an error unless the variable is removed. It
// returns nil for other samplers.
func remoteSampler() (sdktrace.Sampler, error) {
	const variable = "OTEL_TRACES_SAMPLER"
	if os.Getenv(variable) != "jaeger_remote" {
		return nil, nil
	}
	if err := os.Unsetenv(variable); err != nil {
		return nil, err
	}
	options := []jaegerremote.Option{}
	for argument := range strings.SplitSeq(os.Getenv("OTEL_TRACES_SAMPLER_ARG"), ",") {
		name, value, _ := strings.Cut(argument, "=")
		switch name {
		case "":
		case "endpoint":
			options = append(options, jaegerremote.WithSamplingServerURL(value))
		case "pollingIntervalMs":
			ms, err := strconv.Atoi(value)
			if err != nil {
				return nil, fmt.Errorf("OTEL_TRACES_SAMPLER_ARG: %q is not a number of milliseconds", value)
			}
			options = append(options, jaegerremote.WithSamplingRefreshInterval(time.Duration(ms)*time.Millisecond))
		case "initialSamplingRate":
			rate, err := strconv.ParseFloat(value, 64)
			if err != nil {
				return nil, fmt.Errorf("OTEL_TRACES_SAMPLER_ARG: %q is not a rate", value)
			}
			options = append(options, jaegerremote.WithInitialSampler(sdktrace.TraceIDRatioBased(rate)))
		default:
			return nil, fmt.Errorf("OTEL_TRACES_SAMPLER_ARG: unknown argument %q", name)
		}
	}
	return jaegerremote.New(serviceName, options...), nil
}
