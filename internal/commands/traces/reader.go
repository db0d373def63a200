package traces

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

const (
	// maxItems is the maximum number of spans, processes, traces and names in a response: five
	// times the default maximum number of spans of a trace in the service.
	maxItems = 1_000_000
	// maxWarnings is the maximum number of warnings kept for a span, a trace, or a response.
	maxWarnings = 20
)

var errTooMany = errors.New("too many spans and names to display; use --json")

// reader decodes responses of the API. It holds only one element of the JSON in memory at a time.
type reader struct {
	dec       *json.Decoder
	details   bool              // keep tags and logs
	remaining int               // number of items that may still be read
	texts     map[string]string // shared strings
}

func newReader(r io.Reader, details bool) *reader {
	return &reader{dec: json.NewDecoder(r), details: details, remaining: maxItems, texts: map[string]string{}}
}

// answer decodes a response. It calls element at the start of each element of the list name;
// element must decode it. It returns the errors and warnings in the response. Data after the
// response is ignored.
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
				problems = appendLimited(problems, e.String())
				return nil
			})
		}
		return r.skip()
	})
	if err == nil && !found {
		err = fmt.Errorf("missing member %q", name)
	}
	return problems, err
}

// apiError is an element of the list errors.
type apiError struct {
	Msg     string `json:"msg"`
	TraceID string `json:"traceID"`
}

// String returns the message and the trace id.
func (e apiError) String() string {
	if e.TraceID == "" {
		return e.Msg
	}
	return e.Msg + ": " + e.TraceID
}

// object decodes an object or null. It calls member at the start of the value of each member;
// member must decode it.
func (r *reader) object(member func(key string) error) error {
	begun, err := r.beginValue('{')
	if err != nil || !begun {
		return err
	}
	for r.dec.More() {
		t, err := r.dec.Token()
		if err != nil {
			return err
		}
		if err := member(t.(string)); err != nil { // the decoder guarantees that keys are strings
			return err
		}
	}
	_, err = r.dec.Token()
	return err
}

// list decodes a list or null. It calls element at the start of each element; element must decode
// it.
func (r *reader) list(element func() error) error {
	begun, err := r.beginValue('[')
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

// beginValue consumes the opening delimiter. It returns false for null.
func (r *reader) beginValue(delim json.Delim) (bool, error) {
	t, err := r.dec.Token()
	if err != nil || t == nil {
		return false, err
	}
	if t != delim {
		return false, fmt.Errorf("unexpected %q at byte %d, expected %q", fmt.Sprint(t), r.dec.InputOffset(), delim)
	}
	return true, nil
}

func (r *reader) skip() error {
	var nothing json.RawMessage
	return r.dec.Decode(&nothing)
}

// item counts an item, and returns an error above maxItems.
func (r *reader) item() error {
	if r.remaining--; r.remaining < 0 {
		return errTooMany
	}
	return nil
}

func (r *reader) text(to *string) error { return r.dec.Decode(to) }

// shared returns a shared copy of s.
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
		*to = appendLimited(*to, s)
		return err
	})
}

// appendLimited appends a text. Above maxWarnings, it appends a notice once.
func appendLimited(to []string, s string) []string {
	switch {
	case len(to) < maxWarnings:
		return append(to, s)
	case len(to) == maxWarnings:
		return append(to, "more warnings omitted; use --json to see them")
	}
	return to
}
