package query_test

import (
	"encoding/binary"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/pipeline/soak"
	"github.com/tracing-backend/tracing/test/harness/inprocess"
)

// errorKind is one way to fail, planted in an hour.
type errorKind struct {
	service, operation, kind, message string
	from, to, every                   time.Duration // from the beginning of the hour
}

// errorKinds are more errors than are read as examples: of these, the newest 3000 begin after the
// end of "deadlock" and "mail", and after the beginning of the two others.
var errorKinds = []errorKind{
	{"web", "GET /cart", "502", "upstream %d closed the connection", 0, time.Hour, time.Second},
	{"payment", "charge", "Timeout", "no answer from 'pay-%d'", 14*time.Minute + 7300*time.Millisecond, time.Hour, 1750 * time.Millisecond},
	{"orders", "save", "Deadlock", "deadlock in statement %d", 5 * time.Minute, 20 * time.Minute, 22 * time.Second},
	{"mail", "send", "Refused", "connection refused", 2 * time.Minute, 5 * time.Minute, time.Minute},
}

// plantErrors sends the errors, one in each trace, with spans that did not fail.
func plantErrors(p *inprocess.Program, hour time.Time) {
	p.T.Helper()
	number := uint64(0)
	for _, k := range errorKinds {
		td := ptrace.NewTraces()
		rs := td.ResourceSpans().AppendEmpty()
		rs.Resource().Attributes().PutStr("service.name", k.service)
		rs.Resource().Attributes().PutStr("service.version", "2.14.0")
		spans := rs.ScopeSpans().AppendEmpty().Spans()
		for at := k.from; at < k.to; at += k.every {
			number++
			var id [16]byte
			binary.BigEndian.PutUint64(id[8:], number*0x9e3779b97f4a7c15) // not in the order of time
			add := func(name string) ptrace.Span {
				s := spans.AppendEmpty()
				s.SetName(name)
				s.SetTraceID(id)
				s.SetSpanID(pcommon.SpanID([]byte(fmt.Sprintf("%08d", spans.Len()))))
				s.SetStartTimestamp(pcommon.NewTimestampFromTime(hour.Add(at)))
				s.SetEndTimestamp(s.StartTimestamp() + pcommon.Timestamp(time.Millisecond))
				return s
			}
			add("fine")
			failed := add(k.operation)
			failed.Status().SetCode(ptrace.StatusCodeError)
			e := failed.Events().AppendEmpty()
			e.SetName("exception")
			e.Attributes().PutStr("exception.type", k.kind)
			message := k.message
			if k.kind != "Refused" {
				message = fmt.Sprintf(k.message, number)
			}
			e.Attributes().PutStr("exception.message", message)
		}
		body, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(td)
		if err != nil {
			p.T.Fatal(err)
		}
		if status, answer := p.PostOTLP("application/x-protobuf", string(body)); status != http.StatusOK {
			p.T.Fatalf("%d %s", status, answer)
		}
	}
}

// checkErrors compares each group of errors with what was planted.
func checkErrors(p *inprocess.Program, hour time.Time) {
	p.T.Helper()
	var answer struct {
		Data struct {
			Complete bool
			Groups   []struct {
				Service, Type, First, Last string
				Count                      int
				Points                     []int
				Operations, Versions       []struct {
					Text  string
					Count int
				}
			}
		}
	}
	page(p, fmt.Sprintf("errors?start=%d&end=%d", hour.UnixNano(), hour.Add(time.Hour).UnixNano()-1), &answer)
	var got []string
	for _, g := range answer.Data.Groups {
		sum := 0
		for _, n := range g.Points {
			sum += n
		}
		line := fmt.Sprintf("%s %s: %d, %s to %s, %d in parts", g.Service, g.Type, g.Count, clock(g.First, hour), clock(g.Last, hour), sum)
		for _, c := range slices.Concat(g.Operations, g.Versions) {
			line += fmt.Sprintf(", %s %d", c.Text, c.Count)
		}
		got = append(got, line)
	}
	var want []string
	for _, k := range errorKinds {
		n := int((k.to - k.from + k.every - 1) / k.every)
		want = append(want, fmt.Sprintf("%s %s: %d, %s to %s, %d in parts, %s %d, 2.14.0 %d",
			k.service, k.kind, n, k.from, k.from+time.Duration(n-1)*k.every, n, k.operation, n, n))
	}
	if !slices.Equal(got, want) || !answer.Data.Complete {
		p.T.Errorf("complete %t\n got %q\nwant %q", answer.Data.Complete, got, want)
	}
}

// clock returns a time in a response as duration since the beginning of the hour.
func clock(nanos string, hour time.Time) string {
	n, err := strconv.ParseInt(nanos, 10, 64)
	if err != nil {
		return err.Error()
	}
	return time.Unix(0, n).Sub(hour).String()
}

// All errors of a time range are counted in each store, however many there are: their number, the
// first, the last and the line over time of each group match the spans.
func TestAllErrorsAreCounted(t *testing.T) {
	hour := time.Now().Add(-2 * time.Hour).Truncate(time.Second)
	withEachStore(t, func(t *testing.T, _ string, settings []string) {
		p := inprocess.Start(t, append(settings, "service::data_dir="+t.TempDir())...)
		plantErrors(p, hour)
		checkErrors(p, hour)
	})
	t.Run("remote", func(t *testing.T) {
		soak.SkipIfRaced(t)
		s := startSplit(t)
		plantErrors(s.collector, hour)
		checkErrors(s.query, hour)
	})
}
