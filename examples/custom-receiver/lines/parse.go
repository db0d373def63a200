package lines

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

const formatHint = "want: service operation duration_ms, for example: backup copy 5300"

// line is a parsed line.
type line struct {
	service, operation string
	duration           time.Duration
}

// parseLine parses `service operation duration_ms`. The duration is a whole number of milliseconds
// below 2^32, about 49 days.
func parseLine(s string) (line, error) {
	fields := strings.Fields(s)
	if len(fields) != 3 {
		return line{}, fmt.Errorf("%d words; %s", len(fields), formatHint)
	}
	ms, err := strconv.ParseUint(fields[2], 10, 32)
	if err != nil {
		return line{}, fmt.Errorf("duration is not a whole number of milliseconds; %s", formatHint)
	}
	return line{fields[0], fields[1], time.Duration(ms) * time.Millisecond}, nil
}

// parseLines parses one span from each line. Empty lines are skipped.
func parseLines(text string, maxDuration time.Duration) (all []line, err error) {
	n := 0
	for s := range strings.Lines(text) {
		n++
		if strings.TrimSpace(s) == "" {
			continue
		}
		l, err := parseLine(s)
		if err == nil && l.duration > maxDuration {
			err = fmt.Errorf("duration exceeds max_duration (%s)", maxDuration)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		all = append(all, l)
	}
	return all, nil
}

// traces returns a trace of one span for each line. The spans ended now.
func traces(lines []line, now time.Time, random func() uint64) ptrace.Traces {
	td := ptrace.NewTraces()
	for _, l := range lines {
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
	return td
}
