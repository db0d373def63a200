package lines

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

const (
	okAnswer   = "ok\n"
	formatHint = "want: service operation duration_ms, for example: backup copy 5300"
)

// line is what a line says.
type line struct {
	service, operation string
	duration           time.Duration
}

// parseLine reads `service operation duration_ms`. The duration is a whole number of milliseconds below 2^32, about 49 days.
func parseLine(s string) (line, error) {
	fields := strings.Fields(s)
	if len(fields) != 3 {
		return line{}, fmt.Errorf("%d words; %s", len(fields), formatHint)
	}
	ms, err := strconv.ParseUint(fields[2], 10, 32)
	if err != nil {
		return line{}, fmt.Errorf("the duration is not a whole number of milliseconds; %s", formatHint)
	}
	return line{fields[0], fields[1], time.Duration(ms) * time.Millisecond}, nil
}

// parse makes a span of each line that can be read, and an answer for each line, with its number where something is wrong.
func parse(body []byte, now time.Time, random func() uint64) (ptrace.Traces, string) {
	td := ptrace.NewTraces()
	var answers strings.Builder
	number := 0
	for text := range bytes.Lines(body) {
		number++
		l, err := parseLine(string(text))
		if err != nil {
			fmt.Fprintf(&answers, "line %d: %v\n", number, err)
			continue
		}
		l.appendTo(td, now, random)
		answers.WriteString(okAnswer)
	}
	return td, answers.String()
}

// appendTo adds the span, which ended now, in a trace of its own.
func (l line) appendTo(td ptrace.Traces, now time.Time, random func() uint64) {
	rs := td.ResourceSpans().AppendEmpty()
	rs.Resource().Attributes().PutStr("service.name", l.service)
	span := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	id := binary.BigEndian.AppendUint64(nil, random())
	id = binary.BigEndian.AppendUint64(id, random())
	span.SetTraceID(pcommon.TraceID(id))
	span.SetSpanID(pcommon.SpanID(id[8:]))
	span.SetName(l.operation)
	span.SetStartTimestamp(pcommon.NewTimestampFromTime(now.Add(-l.duration)))
	span.SetEndTimestamp(pcommon.NewTimestampFromTime(now))
}
