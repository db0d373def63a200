package probabilisticsampler

import (
	"bytes"
	"encoding/binary"
	"math"
	"strconv"
)

// A trace has 56 bits of randomness: the last seven bytes of its id, or what its tracestate says. It is sampled if these, taken as a
// number, are at least the threshold (W3C Trace Context level 2; OpenTelemetry, "TraceState: Probability Sampling").
const (
	digits = 14 // hexadecimal, of 56 bits
	never  = threshold(1 << 56)
)

// threshold is how much of the randomness is rejected, from 0, nothing, to never.
type threshold uint64

// thresholdOf returns the threshold for a share from 0 to 1, with so many digits behind those that all small shares begin with.
func thresholdOf(share float64, precision int) threshold {
	if share <= 0 {
		return never
	}
	t := never - threshold(math.Round(share*float64(never)))
	if t >= never { // the share is less than can be told
		t = never - 1
	}
	leading := 0
	for leading < digits && (t>>(4*(digits-1-leading)))&0xf == 0xf {
		leading++
	}
	shift := 4 * max(0, digits-leading-precision)
	rounded := (t + (1<<shift)/2) >> shift << shift
	if rounded >= never {
		return t
	}
	return rounded
}

// share is the share of traces that pass.
func (t threshold) share() float64 { return float64(never-t) / float64(never) }

// append appends the threshold as a tracestate has it: 14 digits without the zeros at the end.
func (t threshold) append(dst []byte) []byte {
	var all [digits]byte
	text := strconv.AppendUint(all[:0], uint64(t), 16)
	for range digits - len(text) {
		dst = append(dst, '0')
	}
	dst = append(dst, text...)
	if t == 0 {
		return dst[:len(dst)-digits+1]
	}
	return bytes.TrimRight(dst, "0")
}

// randomnessOf returns the randomness of a trace id; 0 if it is none.
func randomnessOf(traceID []byte) uint64 {
	if len(traceID) != 16 {
		return 0
	}
	return binary.BigEndian.Uint64(traceID[8:]) & (uint64(never) - 1)
}

// state is what a tracestate says of sampling.
type state struct {
	threshold     threshold
	randomness    uint64
	hasThreshold  bool
	hasRandomness bool
}

var (
	vendor        = []byte("ot")
	thresholdKey  = []byte("th")
	randomnessKey = []byte("rv")
)

// parseState reads a tracestate. What is not well-formed is not there.
func parseState(tracestate []byte) (s state) {
	for member := range bytes.SplitSeq(tracestate, []byte(",")) {
		value, ok := vendorValue(member)
		if !ok {
			continue
		}
		for pair := range bytes.SplitSeq(value, []byte(";")) {
			key, text, _ := bytes.Cut(pair, []byte(":"))
			n, ok := parseHex(text)
			switch {
			case !ok:
			case bytes.Equal(key, thresholdKey):
				s.threshold, s.hasThreshold = threshold(n<<(4*(digits-len(text)))), true
			case bytes.Equal(key, randomnessKey) && len(text) == digits:
				s.randomness, s.hasRandomness = n, true
			}
		}
		return s
	}
	return s
}

// vendorValue returns the value of a member of a tracestate, if it is OpenTelemetry's.
func vendorValue(member []byte) (value []byte, ok bool) {
	key, value, ok := bytes.Cut(bytes.Trim(member, " \t"), []byte("="))
	return value, ok && bytes.Equal(key, vendor)
}

// parseHex reads up to 14 digits.
func parseHex(text []byte) (n uint64, ok bool) {
	if len(text) == 0 || len(text) > digits {
		return 0, false
	}
	for _, c := range text {
		switch {
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

// appendState appends a tracestate with another threshold. The member that is changed comes first, as the W3C asks for; the others stay
// as they are.
func appendState(dst, tracestate []byte, t threshold) []byte {
	dst = t.append(append(dst, "ot=th:"...))
	for member := range bytes.SplitSeq(tracestate, []byte(",")) {
		value, ok := vendorValue(member)
		if !ok {
			continue
		}
		for pair := range bytes.SplitSeq(value, []byte(";")) {
			if key, _, _ := bytes.Cut(pair, []byte(":")); len(pair) > 0 && !bytes.Equal(key, thresholdKey) {
				dst = append(append(dst, ';'), pair...)
			}
		}
		break
	}
	for member := range bytes.SplitSeq(tracestate, []byte(",")) {
		if _, ok := vendorValue(member); !ok && len(bytes.Trim(member, " \t")) > 0 {
			dst = append(append(dst, ','), member...)
		}
	}
	return dst
}
