package canary

import (
	"fmt"
	"strings"
)

// Summary is the result of a canary.
type Summary struct {
	Written       int // acknowledged traces
	WriteFailures int // other traces
	Reads         [ways][results]int
}

// count returns the number of readings with a result.
func (s *Summary) count(r Result) (n int) {
	for _, by := range s.Reads {
		n += by[r]
	}
	return n
}

// String returns two lines of text.
func (s *Summary) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d traces written, %d not acknowledged\n", s.Written, s.WriteFailures)
	for r := range results {
		if r == 0 {
			b.WriteString("readings: ")
		} else {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%d %s", s.count(r), r)
	}
	return b.String()
}

// Lost returns an error if an acknowledged span was ever missing or wrong.
func (s *Summary) Lost() error {
	missing, wrong := s.count(Missing), s.count(Wrong)
	if missing+wrong == 0 {
		return nil
	}
	return fmt.Errorf("acknowledged spans were lost or changed: %d readings had missing spans, %d had wrong spans", missing, wrong)
}

// Proven returns an error unless every trace was acknowledged and every reading was correct.
func (s *Summary) Proven() error {
	if err := s.Lost(); err != nil {
		return err
	}
	if failed := s.count(Failed); s.WriteFailures+failed > 0 {
		return fmt.Errorf("%d traces were not acknowledged, %d readings failed", s.WriteFailures, failed)
	}
	return nil
}
