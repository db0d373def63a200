package probabilisticsampler

import (
	"encoding/binary"
	"fmt"
	"strings"

	tracestates "github.com/open-telemetry/opentelemetry-collector-contrib/pkg/sampling"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// hashing makes the same decisions as the OpenTelemetry Collector in the mode hash_seed, so that
// both can process parts of the same traces: 14 bits of a hash of the trace id, which depends on
// the seed, are compared with the percentage.
//
// The hash becomes the randomness in the tracestate (`ot=rv:`), and the percentage its threshold,
// so that readers of tracestates compute the same decision. There is no decision about a span that
// already has one of these, because another method has sampled it, nor about a span without a trace
// id or with an invalid tracestate.
type hashing struct {
	seed       uint32
	threshold  otlpdata.Threshold
	failClosed bool // drop spans without a decision
}

const (
	hashBits    = 14
	hashBuckets = 1 << hashBits
	hashShift   = 4*otlpdata.ThresholdDigits - hashBits // of the decisive bits of a randomness or threshold
)

func newHashing(percentage float32, seed uint32, failClosed bool) *hashing {
	sampled := uint32(percentage * (hashBuckets / 100.0)) // in 32 bits and rounded down, as the Collector does
	return &hashing{seed: seed, failClosed: failClosed, threshold: otlpdata.Threshold(hashBuckets-sampled) << hashShift}
}

// samplesAll returns false: spans get a randomness and a threshold even if all are sampled.
func (h *hashing) samplesAll() bool { return false }

func (h *hashing) decide(dst []byte, id otlpdata.TraceID, tracestate []byte, p priority) ([]byte, bool, bool) {
	if p == priorityDrop || p == priorityNone && h.threshold == otlpdata.RejectAll {
		return dst, false, false
	}
	state, usable := unsampled(tracestate)
	randomness, threshold := h.randomness(id), h.threshold
	switch {
	case p == priorityKeep:
		threshold = 0
	case !usable || id.IsZero():
		if h.failClosed {
			return dst, false, false
		}
		threshold = 0
	}
	if randomness < uint64(threshold) {
		return dst, false, false
	}
	if !usable {
		return dst, false, true
	}
	return appendSampled(dst, &state, randomness, threshold), true, true
}

// randomness returns 56 bits of randomness for a trace. The first 14 bits decide: they are the
// inverse of the hash, because the hash is sampled if it is small. The other 42 bits are derived
// from the same hash.
func (h *hashing) randomness(id otlpdata.TraceID) uint64 {
	if id.IsZero() {
		return uint64(otlpdata.RejectAll - 1)
	}
	hash := h.hash(id)
	bucket, rest := uint64(hash%hashBuckets), uint64(hash>>(32-hashBits))
	return (hashBuckets-1-bucket)<<hashShift | (rest^rest<<10)<<hashBits | bucket
}

// hash returns the 32-bit FNV-1a hash of the seed, in little-endian order, and the trace id.
func (h *hashing) hash(id otlpdata.TraceID) uint32 {
	const offset, prime = 2166136261, 16777619
	var seed [4]byte
	binary.LittleEndian.PutUint32(seed[:], h.seed)
	hash := uint32(offset)
	for _, b := range seed {
		hash = (hash ^ uint32(b)) * prime
	}
	for _, b := range id {
		hash = (hash ^ uint32(b)) * prime
	}
	return hash
}

// unsampled parses a tracestate. It reports whether the tracestate is valid and has no sampling
// information.
func unsampled(tracestate []byte) (tracestates.W3CTraceState, bool) {
	if len(tracestate) == 0 {
		return tracestates.W3CTraceState{}, true
	}
	state, err := tracestates.NewW3CTraceState(string(tracestate))
	otel := state.OTelValue()
	return state, err == nil && otel.RValue() == "" && otel.TValue() == ""
}

// appendSampled appends the tracestate with a randomness and a threshold.
func appendSampled(dst []byte, state *tracestates.W3CTraceState, randomness uint64, threshold otlpdata.Threshold) []byte {
	if !state.HasAnyValue() {
		return threshold.Append(fmt.Appendf(dst, "ot=rv:%0*x;th:", otlpdata.ThresholdDigits, randomness))
	}
	rv, _ := tracestates.UnsignedToRandomness(randomness)
	th, _ := tracestates.UnsignedToThreshold(uint64(threshold))
	state.OTelValue().SetRValue(rv)
	state.OTelValue().UpdateTValueWithSampling(th) //nolint:errcheck // there was no threshold
	var out strings.Builder
	state.Serialize(&out) //nolint:errcheck // never fails
	return append(dst, out.String()...)
}
