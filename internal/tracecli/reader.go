package tracecli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

const (
	// maxItems is how many spans, processes, traces and names are read of one answer: five times the spans that the service shows of a trace
	// by default.
	maxItems = 1_000_000
	// maxWarnings is how many warnings are kept of a span, of a trace, and of an answer.
	maxWarnings = 20
)

var errTooMany = errors.New("it has more spans and names than a view is made of; --json prints what there is")

// reader reads answers of the API. It holds one member of the JSON at a time, never more than that.
type reader struct {
	dec     *json.Decoder
	details bool              // keep tags and logs
	room    int               // how many items may come yet
	texts   map[string]string // names that occur again and again
}

func newReader(r io.Reader, details bool) *reader {
	return &reader{dec: json.NewDecoder(r), details: details, room: maxItems, texts: map[string]string{}}
}

// answer reads an answer: element is called where each element of the list of that name begins, and must read it. It returns what the answer
// says of itself, in errors or warnings. What follows the answer is not looked at.
func (r *reader) answer(name string, element func() error) (problems []string, err error) {
	found := false
	err = r.object(func(key string) error {
		switch key {
		case name:
			found = true
			return r.list(element)
		case "warnings":
			return r.warnings(&problems)
		case "errors":
			return r.list(func() error {
				var e apiError
				if err := r.dec.Decode(&e); err != nil {
					return err
				}
				problems = appendBounded(problems, e.String())
				return nil
			})
		}
		return r.skip()
	})
	if err == nil && !found {
		err = fmt.Errorf("it has no %s", name)
	}
	return problems, err
}

// apiError is an element of errors.
type apiError struct {
	Msg     string `json:"msg"`
	TraceID string `json:"traceID"`
}

// String returns the message and what it is about.
func (e apiError) String() string {
	if e.TraceID == "" {
		return e.Msg
	}
	return e.Msg + ": " + e.TraceID
}

// object reads an object, or null. member is called where the value of each member begins, and must read it.
func (r *reader) object(member func(key string) error) error {
	begun, err := r.begin('{')
	if err != nil || !begun {
		return err
	}
	for r.dec.More() {
		t, err := r.dec.Token()
		if err != nil {
			return err
		}
		if err := member(t.(string)); err != nil { // JSON has no keys of other types, and the decoder sees to it
			return err
		}
	}
	_, err = r.dec.Token()
	return err
}

// list reads a list, or null. element is called where each element begins, and must read it.
func (r *reader) list(element func() error) error {
	begun, err := r.begin('[')
	if err != nil || !begun {
		return err
	}
	for r.dec.More() {
		if err := element(); err != nil {
			return err
		}
	}
	_, err = r.dec.Token()
	return err
}

// begin reports whether there is more than null.
func (r *reader) begin(delim json.Delim) (bool, error) {
	t, err := r.dec.Token()
	if err != nil || t == nil {
		return false, err
	}
	if t != delim {
		return false, fmt.Errorf("%q stands where %q belongs (byte %d)", fmt.Sprint(t), delim, r.dec.InputOffset())
	}
	return true, nil
}

func (r *reader) skip() error {
	var nothing json.RawMessage
	return r.dec.Decode(&nothing)
}

// item counts what is kept, before or after it is read.
func (r *reader) item() error {
	if r.room--; r.room < 0 {
		return errTooMany
	}
	return nil
}

func (r *reader) text(to *string) error { return r.dec.Decode(to) }

// shared returns the same text, in one copy for all spans.
func (r *reader) shared(s string) string {
	if known, ok := r.texts[s]; ok {
		return known
	}
	r.texts[s] = s
	return s
}

func (r *reader) warnings(to *[]string) error {
	return r.list(func() error {
		var s string
		err := r.text(&s)
		*to = appendBounded(*to, s)
		return err
	})
}

// appendBounded appends a text, and says once that there are more than are kept.
func appendBounded(to []string, s string) []string {
	switch {
	case len(to) < maxWarnings:
		return append(to, s)
	case len(to) == maxWarnings:
		return append(to, "and more, which --json prints")
	}
	return to
}
