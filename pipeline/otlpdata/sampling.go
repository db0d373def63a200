package otlpdata

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"strconv"
	"strings"
)

// Threshold is how much of the randomness of traces is rejected, from 0, nothing, to RejectAll. A trace has 56 bits of randomness: the last
// seven bytes of its id, or what its tracestate says. It is sampled if these, taken as a number, are at least the threshold (W3C Trace
// Context level 2; OpenTelemetry, "TraceState: Probability Sampling").
type Threshold uint64

const (
	// ThresholdDigits is how many hexadecimal digits a threshold has.
	ThresholdDigits = 14
	// RejectAll is above every threshold with which something is sampled.
	RejectAll Threshold = 1 << (4 * ThresholdDigits)
	// MaxAdjustedCount is how many spans one stands for at most: a threshold that leaves less than one in 16 million is not believed, so
	// that a few spans cannot make a service look as busy as anybody pleases.
	MaxAdjustedCount = 1 << 24
)

// Share is the share of traces that pass.
func (t Threshold) Share() float64 { return float64(RejectAll-t) / float64(RejectAll) }

// Append appends the threshold as a tracestate has it: its digits without the zeros at the end.
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

// adjustedCount returns how many spans one that passed the threshold stands for: 1 in Share, but 1 where that is more than
// MaxAdjustedCount. What is no whole number is one of its two neighbours, such that the mean over many spans is exact.
//
// Which one follows from the ids alone: every store and every process says the same of a span, and so do its duplicates. The ids are mixed
// with the multipliers below, since what decided about the trace, which are bits of its id, is not random any more among what passed.
func (t Threshold) adjustedCount(trace TraceID, span SpanID) uint64 {
	const least = uint64(RejectAll) / MaxAdjustedCount
	if t == 0 || t > RejectAll-Threshold(least) {
		return 1
	}
	kept := uint64(RejectAll - t)
	n, rest := uint64(RejectAll)/kept, uint64(RejectAll)%kept
	if place, _ := bits.Mul64(mixIDs(trace, span), kept); place < rest { // place is one of kept numbers, each as likely as the others
		n++
	}
	return n
}

// mixIDs returns 64 bits that look independent of any part of the ids: the three words of these, big-endian, go one after the other through
// the finalizer of SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators; the variant 13 of Stafford).
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

// AdjustedCount returns how many spans a span with these ids and this tracestate stands for, see Sampling.AdjustedCount.
func AdjustedCount(tracestate string, trace TraceID, span SpanID) uint64 {
	if tracestate == "" {
		return 1
	}
	return ParseSampling(tracestate).AdjustedCount(trace, span)
}

// AdjustedCount returns how many spans s stands for, because its trace was sampled and others were not.
func (s *Span) AdjustedCount() uint64 { return AdjustedCount(s.TraceState, s.TraceID, s.SpanID) }

// Sampling is what a tracestate says of sampling.
type Sampling struct {
	Threshold     Threshold // 0 unless HasThreshold
	Randomness    uint64    // of 56 bits; 0 unless HasRandomness
	HasThreshold  bool
	HasRandomness bool
}

// Of returns what a tracestate that says s means for a trace: unless it says a randomness, that is the one of the trace's id, and a threshold
// that would have rejected the trace is not there, since who sampled what it should not have says nothing of its share.
func (s Sampling) Of(trace TraceID) Sampling {
	if !s.HasRandomness {
		s.Randomness = binary.BigEndian.Uint64(trace[8:]) & uint64(RejectAll-1)
	}
	if s.Randomness < uint64(s.Threshold) {
		s.Threshold, s.HasThreshold = 0, false
	}
	return s
}

// AdjustedCount returns how many spans a span with these ids stands for whose tracestate says s: one divided by the share of its threshold, or
// 1 where there is no threshold, none that is believed of the trace (see Of), or one that leaves less than one in MaxAdjustedCount. What is
// no whole number is one of its two neighbours; which one follows from the ids, so that all stores say the same, and the mean over many
// spans is exact.
func (s Sampling) AdjustedCount(trace TraceID, span SpanID) uint64 {
	return s.Of(trace).Threshold.adjustedCount(trace, span)
}

const (
	vendorKey     = "ot="
	thresholdKey  = "th"
	randomnessKey = "rv"
)

// ParseSampling reads a tracestate. What is not well-formed is not there.
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

// ParseSamplingBytes is ParseSampling for bytes, of which it keeps nothing.
func ParseSamplingBytes(tracestate []byte) Sampling { return ParseSampling(text(tracestate)) }

// vendorValue returns the value of the first member of a tracestate that is OpenTelemetry's.
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

// vendorMember returns the value of a member of a tracestate, if it is OpenTelemetry's.
func vendorMember(member string) (value string, ok bool) {
	return strings.CutPrefix(strings.Trim(member, " \t"), vendorKey)
}

// parseHex reads up to ThresholdDigits digits.
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

// AppendThreshold appends a tracestate with another threshold. The member that is changed comes first, as the W3C asks for; the others stay
// as they are.
func AppendThreshold(dst, tracestate []byte, t Threshold) []byte {
	rest := text(tracestate)
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
