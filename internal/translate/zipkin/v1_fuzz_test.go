package zipkin

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/tracing-backend/tracing/internal/translate/native"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// checkOutput checks that an accepted input became valid OTLP of limited size.
func checkOutput(t *testing.T, in, out []byte, growth int) {
	t.Helper()
	if len(out) > growth*len(in) {
		t.Fatalf("%d bytes became %d: %q", len(in), len(out), in)
	}
	var limit *otlpdata.LimitError
	if _, err := otlpdata.FromOTLP(out, otlpdata.Meta{}, otlpdata.Limits{}); err != nil && !errors.As(err, &limit) {
		t.Fatalf("output is not a valid request: %v", err)
	}
}

func FuzzFromV1JSON(f *testing.F) {
	for _, r := range v1Rules {
		f.Add([]byte(r.body), false)
	}
	f.Fuzz(func(t *testing.T, b []byte, parse bool) {
		opt := v1Options()
		opt.ParseStringTags = parse
		out, err := FromV1JSON(b, opt)
		if err != nil {
			return
		}
		if !json.Valid(b) {
			t.Fatalf("accepted: %q", b)
		}
		const growth = 4
		checkOutput(t, b, out, growth)
	})
}

func FuzzFromV1Thrift(f *testing.F) {
	for _, r := range zRules() {
		f.Add(encodeList(f, r.spans))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if out, err := FromV1Thrift(b, v1Options()); err == nil {
			const growth = 8
			checkOutput(t, b, out, growth)
		}
	})
}

func FuzzFromEmitZipkinBatch(f *testing.F) {
	for _, r := range zRules() {
		f.Add(encodeArguments(f, native.Binary, r.spans), false)
		f.Add(encodeArguments(f, native.Compact, r.spans), true)
	}
	f.Fuzz(func(t *testing.T, b []byte, compact bool) {
		enc := native.Binary
		if compact {
			enc = native.Compact
		}
		checkAgainstGenerated(t, enc, b)
		if out, err := FromEmitZipkinBatch(b, enc); err == nil {
			checkOutput(t, b, out, EmitZipkinGrowth)
		}
	})
}
