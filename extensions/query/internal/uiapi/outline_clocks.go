package uiapi

import (
	"strconv"

	"github.com/tracing-backend/tracing/internal/translate/adjust"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// maxOutlineWarnings is the maximum number of warnings in an outline. Details of spans have all
// warnings.
const maxOutlineWarnings = 1000

// alignClocks finds the clock corrections and the warnings of single spans. As in other APIs, a
// partially known trace is not corrected.
func (o *outline) alignClocks() {
	for i := range o.spans {
		if s := &o.spans[i]; s.start == 0 || s.reversed {
			o.warn(int32(i), ownWarnings(s.start, s.reversed)...)
		}
	}
	if o.cut || !o.sharedIDs && !o.isSkewed() {
		return
	}
	spans := make([]adjust.ClockSpan, len(o.spans))
	for i := range o.spans {
		spans[i] = o.spans[i].clock()
	}
	adjust.AlignClocks(spans, o.maxSkew, func(at int, shift int64, problem string) {
		if problem != "" {
			o.warn(int32(at), problem)
			return
		}
		if o.shifts == nil {
			o.shifts = make([]int64, len(o.spans))
		}
		o.shifts[at] = shift
	})
}

func (o *outline) warn(at int32, texts ...string) {
	if o.warnings == nil {
		o.warnings = make(map[int32][]string)
	}
	if len(o.warnings) < maxOutlineWarnings {
		o.warnings[at] = append(o.warnings[at], texts...)
	}
}

// isSkewed reports whether the clocks of a span and its parent differ. Most traces need no other
// clock checks.
func (o *outline) isSkewed() bool {
	for i := range o.spans {
		s := &o.spans[i]
		if s.parentIndex < 0 {
			continue
		}
		child, parent := s.clock(), o.spans[s.parentIndex].clock()
		if adjust.IsSkewed(&parent, &child) {
			return true
		}
	}
	return false
}

func (s *outlineSpan) clock() adjust.ClockSpan {
	return adjust.ClockSpan{ID: s.id, Parent: s.parent, Start: s.start, Duration: s.duration, Kind: int32(s.kind), Host: s.host}
}

// appendClocks appends the clock corrections and the warnings.
func (o *outline) appendClocks(dst []byte, order []int32, spill spill) (_ []byte, err error) {
	skew, warnings := sparse{name: "skew", value: "shift"}, sparse{name: "warnings", value: "text"}
	var shifts []int64
	var texts []string
	for _, at := range order {
		index := o.spans[at].answerIndex
		if o.shifts != nil && o.shifts[at] != 0 {
			skew.spans, shifts = append(skew.spans, index), append(shifts, o.shifts[at])
		}
		for _, text := range o.warnings[at] {
			warnings.spans, texts = append(warnings.spans, index), append(texts, text)
		}
	}
	skew.of = func(dst []byte, i int) []byte { return strconv.AppendInt(dst, shifts[i], 10) }
	warnings.of = func(dst []byte, i int) []byte { return otlpdata.AppendJSONString(dst, texts[i]) }
	if dst, err = appendSparse(dst, &skew, spill); err != nil {
		return dst, err
	}
	return appendSparse(dst, &warnings, spill)
}
