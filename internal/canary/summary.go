package canary

import (
	"fmt"
	"strings"
)

// Summary is what a canary did and found.
type Summary struct {
	Written       int // traces that were acknowledged
	WriteFailures int // traces that were not
	Reads         [ways][results]int
}

// count returns how many readings had a result.
func (s *Summary) count(r Result) (n int) {
	for _, by := range s.Reads {
		n += by[r]
	}
	return n
}

// String returns two lines that people can read.
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

// Lost returns an error if anything acknowledged was ever missing or wrong.
func (s *Summary) Lost() error {
	missing, wrong := s.count(Missing), s.count(Wrong)
	if missing+wrong == 0 {
		return nil
	}
	return fmt.Errorf("acknowledged spans were lost or changed: %d readings missed some, %d were wrong", missing, wrong)
}

// Proven returns an error unless every trace was acknowledged and every reading was right.
func (s *Summary) Proven() error {
	if err := s.Lost(); err != nil {
		return err
	}
	if failed := s.count(Failed); s.WriteFailures+failed > 0 {
		return fmt.Errorf("%d traces were not acknowledged, %d readings failed", s.WriteFailures, failed)
	}
	return nil
}
