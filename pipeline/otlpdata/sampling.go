package otlpdata

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"strconv"
	"strings"
)

// Threshold is the rejection threshold of a sampler, from 0 (rejects no trace) to RejectAll. A
// trace has 56 bits of randomness: the value in its tracestate, or else the last seven bytes of its
// id. The trace is sampled if its randomness is at least the threshold (W3C Trace Context level 2;
// OpenTelemetry, "TraceState: Probability Sampling").
type Threshold uint64

const (
	// ThresholdDigits is the number of hexadecimal digits of a threshold.
	ThresholdDigits = 14
	// RejectAll is above every valid threshold.
	RejectAll Threshold = 1 << (4 * ThresholdDigits)
	// MaxAdjustedCount is the maximum number of spans that one span represents. Thresholds that
	// sample less than one trace in 16 million are ignored, so that a few spans with implausible
	// thresholds cannot inflate the statistics of a service.
	MaxAdjustedCount = 1 << 24
)

// Probability returns the share of traces that the threshold samples.
func (t Threshold) Probability() float64 { return float64(RejectAll-t) / float64(RejectAll) }

// Append appends the threshold in the form of a tracestate: its digits without trailing zeros.
func (t Threshold) Append(dst []byte) []byte {
	var all [ThresholdDigits]byte
	digits := strconv.AppendUint(all[:0], uint64(t), 16)
	if t == 0 {
		return append(dst, '0')
	}
	for range ThresholdDigits - len(digits) {
		dst = append(dst, '0')
	}
	return append(dst, bytes.TrimRight(digits, "0")...)
}

// adjustedCount returns the number of spans that one sampled span represents: 1 divided by
// Probability, or 1 if that exceeds MaxAdjustedCount. A fraction is rounded up or down so that the
// mean over many spans is exact.
//
// The direction of rounding depends on the ids only, so that every store and every process returns
// the same number for a span and its duplicates. The ids are mixed first, because the sampling
// decision depended on bits of the trace id, which are therefore not uniform among sampled traces.
func (t Threshold) adjustedCount(trace TraceID, span SpanID) uint64 {
	const minKept = uint64(RejectAll) / MaxAdjustedCount
	if t == 0 || t > RejectAll-Threshold(minKept) {
		return 1
	}
	kept := uint64(RejectAll - t)
	n, rest := uint64(RejectAll)/kept, uint64(RejectAll)%kept
	if random, _ := bits.Mul64(mixIDs(trace, span), kept); random < rest { // random is uniform in [0, kept)
		n++
	}
	return n
}

// mixIDs returns 64 bits that are uniform even if a part of the ids is not: it passes the three
// big-endian words of the ids one after the other through the finalizer of SplitMix64 (Steele, Lea,
// Flood: Fast Splittable Pseudorandom Number Generators; Stafford's variant 13).
func mixIDs(trace TraceID, span SpanID) uint64 {
	const increment = 0x9e3779b97f4a7c15
	words := [...]uint64{binary.BigEndian.Uint64(trace[:8]), binary.BigEndian.Uint64(trace[8:]), binary.BigEndian.Uint64(span[:])}
	h := uint64(increment)
	for _, word := range words {
		h = (h ^ word) + increment
		h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
		h = (h ^ h>>27) * 0x94d049bb133111eb
		h ^= h >> 31
	}
	return h
}

// AdjustedCount returns the number of spans that a span with these ids and this tracestate
// represents, see Sampling.AdjustedCount.
func AdjustedCount(tracestate string, trace TraceID, span SpanID) uint64 {
	if tracestate == "" {
		return 1
	}
	return ParseSampling(tracestate).AdjustedCount(trace, span)
}

// AdjustedCount returns the number of spans that s represents because its trace was sampled and
// others were not.
func (s *Span) AdjustedCount() uint64 { return AdjustedCount(s.TraceState, s.TraceID, s.SpanID) }

// Sampling holds the sampling fields of a tracestate.
type Sampling struct {
	Threshold     Threshold // 0 unless HasThreshold
	Randomness    uint64    // of 56 bits; 0 unless HasRandomness
	HasThreshold  bool
	HasRandomness bool
}

// ForTrace returns s as it applies to a trace. A missing randomness is taken from the trace id. A
// threshold that would have rejected the trace is inconsistent with it and says nothing about the
// sampling probability, so it is removed.
func (s Sampling) ForTrace(trace TraceID) Sampling {
	if !s.HasRandomness {
		s.Randomness = binary.BigEndian.Uint64(trace[8:]) & uint64(RejectAll-1)
	}
	if s.Randomness < uint64(s.Threshold) {
		s.Threshold, s.HasThreshold = 0, false
	}
	return s
}

// AdjustedCount returns the number of spans that a span with these ids and the sampling fields s
// represents: 1 divided by the probability of its threshold. The result is 1 if there is no
// threshold, if it is inconsistent with the trace id (see ForTrace), or if it samples less than one
// trace in MaxAdjustedCount. A fraction is rounded up or down depending on the ids, so that all
// stores return the same number and the mean over many spans is exact.
func (s Sampling) AdjustedCount(trace TraceID, span SpanID) uint64 {
	return s.ForTrace(trace).Threshold.adjustedCount(trace, span)
}

const (
	vendorKey     = "ot="
	thresholdKey  = "th"
	randomnessKey = "rv"
)

// ParseSampling reads the sampling fields of a tracestate. Malformed fields are ignored.
func ParseSampling(tracestate string) (s Sampling) {
	value, more := vendorValue(tracestate)
	for more {
		var pair string
		pair, value, more = strings.Cut(value, ";")
		key, digits, _ := strings.Cut(pair, ":")
		n, ok := parseHex(digits)
		switch {
		case !ok:
		case key == thresholdKey:
			s.Threshold, s.HasThreshold = Threshold(n<<(4*(ThresholdDigits-len(digits)))), true
		case key == randomnessKey && len(digits) == ThresholdDigits:
			s.Randomness, s.HasRandomness = n, true
		}
	}
	return s
}

// ParseSamplingBytes is like ParseSampling for bytes. It does not retain them.
func ParseSamplingBytes(tracestate []byte) Sampling { return ParseSampling(unsafeString(tracestate)) }

// vendorValue returns the value of the first OpenTelemetry member of a tracestate.
func vendorValue(tracestate string) (value string, ok bool) {
	for more := true; more; {
		var member string
		member, tracestate, more = strings.Cut(tracestate, ",")
		if value, ok := vendorMember(member); ok {
			return value, true
		}
	}
	return "", false
}

// vendorMember returns the value of a member of a tracestate if it is the OpenTelemetry member.
func vendorMember(member string) (value string, ok bool) {
	return strings.CutPrefix(strings.Trim(member, " \t"), vendorKey)
}

// parseHex parses up to ThresholdDigits lower-case hexadecimal digits.
func parseHex(digits string) (n uint64, ok bool) {
	if len(digits) == 0 || len(digits) > ThresholdDigits {
		return 0, false
	}
	for i := range len(digits) {
		switch c := digits[i]; {
		case '0' <= c && c <= '9':
			n = n<<4 | uint64(c-'0')
		case 'a' <= c && c <= 'f':
			n = n<<4 | uint64(c-'a'+10)
		default:
			return 0, false
		}
	}
	return n, true
}

// AppendThreshold appends a copy of a tracestate with another threshold. The changed member comes
// first, as W3C Trace Context requires; the other members stay unchanged.
func AppendThreshold(dst, tracestate []byte, t Threshold) []byte {
	rest := unsafeString(tracestate)
	dst = t.Append(append(append(append(dst, vendorKey...), thresholdKey...), ':'))
	value, more := vendorValue(rest)
	for more {
		var pair string
		pair, value, more = strings.Cut(value, ";")
		if key, _, _ := strings.Cut(pair, ":"); len(pair) > 0 && key != thresholdKey {
			dst = append(append(dst, ';'), pair...)
		}
	}
	for more := true; more; {
		var member string
		member, rest, more = strings.Cut(rest, ",")
		if _, ok := vendorMember(member); !ok && strings.Trim(member, " \t") != "" {
			dst = append(append(dst, ','), member...)
		}
	}
	return dst
}
