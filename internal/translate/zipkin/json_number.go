package zipkin

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// int reads an integer. Fractions are truncated, numbers out of range become the nearest int64, and
// strings that contain numbers are accepted.
func (s *scanner) int() int64 {
	var token string
	switch s.kind() {
	case jsonNumber:
		token = s.number()
	case jsonString:
		token = strings.TrimSpace(s.quoted())
	default:
		s.mismatch(jsonNumber)
	}
	if token == "" {
		return 0
	}
	if n, ok := smallInt(token); ok {
		return n
	}
	n, err := strconv.ParseInt(token, 10, 64)
	if err == nil || errors.Is(err, strconv.ErrRange) {
		return n
	}
	f, err := strconv.ParseFloat(token, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) || math.IsNaN(f) {
		s.fail(fmt.Errorf("cannot read %.40q as number", token))
		return 0
	}
	return saturate(f)
}

// smallInt parses the usual form of timestamps and durations: up to 18 digits and nothing else.
func smallInt(token string) (int64, bool) {
	if len(token) > 18 {
		return 0, false
	}
	var n int64
	for i := range len(token) {
		d := token[i] - '0'
		if d > 9 {
			return 0, false
		}
		n = n*10 + int64(d)
	}
	return n, true
}

func saturate(f float64) int64 {
	switch {
	case f >= math.MaxInt64:
		return math.MaxInt64
	case f <= math.MinInt64:
		return math.MinInt64
	}
	return int64(f)
}

// number reads a number and returns its text.
func (s *scanner) number() string {
	from := s.pos
	if s.at('-') {
		s.pos++
	}
	if s.at('0') {
		s.pos++
	} else {
		s.digits("in numeric literal")
	}
	if s.at('.') {
		s.pos++
		s.digits("after decimal point in numeric literal")
	}
	if s.at('e') || s.at('E') {
		s.pos++
		if s.at('+') || s.at('-') {
			s.pos++
		}
		s.digits("in exponent of numeric literal")
	}
	if s.err != nil {
		return ""
	}
	return unsafeString(s.b[from:s.pos])
}

func (s *scanner) at(c byte) bool { return s.pos < len(s.b) && s.b[s.pos] == c }

// digits reads one digit or more.
func (s *scanner) digits(context string) {
	from := s.pos
	for s.pos < len(s.b) && s.b[s.pos]-'0' <= 9 {
		s.pos++
	}
	if s.pos == from {
		s.bad(context)
	}
}
