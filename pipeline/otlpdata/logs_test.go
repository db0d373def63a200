package otlpdata

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
)

// sampleLogs returns a request with all fields of a log record.
func sampleLogs(tb testing.TB, records int) []byte {
	tb.Helper()
	r := plogotlp.NewExportRequest()
	rl := r.Logs().ResourceLogs().AppendEmpty()
	rl.SetSchemaUrl("https://schema.test/1")
	rl.Resource().Attributes().PutStr("service.name", "shop")
	sl := rl.ScopeLogs().AppendEmpty()
	sl.Scope().SetName("logger")
	for i := range records {
		rec := sl.LogRecords().AppendEmpty()
		rec.SetTimestamp(1_700_000_000_000_000_000)
		rec.SetObservedTimestamp(1_700_000_000_000_000_001)
		rec.SetSeverityNumber(plog.SeverityNumberError)
		rec.SetSeverityText("ERROR")
		rec.SetEventName("exception")
		rec.SetTraceID([16]byte{15: byte(i + 1)})
		rec.SetSpanID([8]byte{7: byte(i + 1)})
		rec.SetFlags(plog.DefaultLogRecordFlags.WithIsSampled(true))
		rec.SetDroppedAttributesCount(3)
		rec.Body().SetEmptyMap().PutEmptySlice("lines").AppendEmpty().SetStr("no cart")
		rec.Attributes().PutStr("exception.type", "NotFound")
	}
	r.Logs().ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty().Body().SetStr("text")
	b, err := r.MarshalProto()
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// A batch of log records keeps the bytes, and is joined and split like one of spans.
func TestLogs(t *testing.T) {
	enc := sampleLogs(t, 5)
	b, err := FromOTLP(enc, Meta{Signal: SignalLogs, Tenant: "a"}, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := b.Encoded(); !bytes.Equal(got, enc) || b.Len() != 6 || b.Size() != len(enc) {
		t.Errorf("%d records of %d bytes, want 6 of %d", b.Len(), b.Size(), len(enc))
	}
	if s := b.Services(); len(s) != 2 || s[0] != (ServiceCount{Service: "shop", Spans: 5}) || s[1].Spans != 1 {
		t.Errorf("services %+v", s)
	}
	joined, err := Concat(b, b)
	if err != nil || joined.Len() != 12 || joined.Meta().Signal != SignalLogs {
		t.Fatalf("joined: %d, %v", joined.Len(), err)
	}
	parts, err := joined.Split(4, 0)
	if err != nil || len(parts) != 3 {
		t.Fatalf("%d parts, %v", len(parts), err)
	}
	all := plog.NewLogs()
	for _, p := range parts {
		ld, err := p.Logs()
		if err != nil || p.Len() != ld.LogRecordCount() || p.Len() > 4 {
			t.Errorf("a part has %d of %d records, %v", p.Len(), ld.LogRecordCount(), err)
		}
		ld.ResourceLogs().MoveAndAppendTo(all.ResourceLogs())
	}
	again, err := FromLogs(all, Meta{})
	if err != nil || again.Len() != 12 || again.Meta().Signal != SignalLogs {
		t.Errorf("from objects: %d records, %v", again.Len(), err)
	}
	whole, err := joined.Logs()
	if err != nil || whole.LogRecordCount() != 12 || all.LogRecordCount() != 12 {
		t.Errorf("%d and %d records, %v", whole.LogRecordCount(), all.LogRecordCount(), err)
	}
	first := func(ld plog.Logs) plog.LogRecord { return ld.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0) }
	if got := first(all).Body().AsString(); got != `{"lines":["no cart"]}` || first(all).EventName() != "exception" {
		t.Errorf("body %s", got)
	}
}

// Spans and log records are not mixed up.
func TestSignalsAreKeptApart(t *testing.T) {
	logs, err := FromOTLP(sampleLogs(t, 1), Meta{Signal: SignalLogs}, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Concat(logs, fromOTLP(t, sample(1), Meta{})); err == nil {
		t.Error("spans and log records were joined")
	}
	if err := logs.Walk(discard{}); !errors.Is(err, errNotSpans) {
		t.Errorf("walk: %v", err)
	}
	if _, err := logs.Traces(); !errors.Is(err, errNotSpans) {
		t.Errorf("objects: %v", err)
	}
}

func TestLogLimits(t *testing.T) {
	enc := sampleLogs(t, 5)
	for want, lim := range map[string]Limits{
		"log records in one request: more than 4":  {Spans: 4},
		"request size in bytes: more than 10":      {Bytes: 10},
		"nesting of attribute values: more than 2": {Depth: 2},
	} {
		var limit *LimitError
		if _, err := FromOTLP(enc, Meta{Signal: SignalLogs}, lim); !errors.As(err, &limit) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestLogsInJSON(t *testing.T) {
	r := plogotlp.NewExportRequest()
	if err := r.UnmarshalProto(sampleLogs(t, 2)); err != nil {
		t.Fatal(err)
	}
	text, err := r.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	b, err := FromJSON(text, Meta{Signal: SignalLogs}, Limits{})
	if err != nil || b.Len() != 3 {
		t.Fatalf("%v", err)
	}
	ld, err := b.Logs()
	if err != nil {
		t.Fatal(err)
	}
	back, err := plogotlp.NewExportRequestFromLogs(ld).MarshalJSON()
	if err != nil || !bytes.Equal(back, text) {
		t.Errorf("%v\n%s\n%s", err, back, text)
	}
	for _, bad := range []string{"", "[]", `{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"traceId":"xy"}]}]}]}`} {
		if _, err := FromJSON([]byte(bad), Meta{Signal: SignalLogs}, Limits{}); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
	if _, err := FromJSON([]byte("[]"), Meta{Signal: SignalLogs}, Limits{}); err != errLogsStart {
		t.Errorf("%v", err)
	}
}

// BenchmarkLogs validates log records of about 300 bytes, beside decoding them with pdata.
func BenchmarkLogs(b *testing.B) {
	const records = 512
	r := plogotlp.NewExportRequest()
	list := r.Logs().ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords()
	for i := range records {
		rec := list.AppendEmpty()
		rec.SetTimestamp(1_700_000_000_000_000_000)
		rec.SetSeverityText("ERROR")
		rec.SetTraceID([16]byte{byte(i)})
		rec.SetSpanID([8]byte{byte(i)})
		rec.Body().SetStr("could not charge the card: the provider did not answer in time, will be sent again later")
		rec.Attributes().PutStr("exception.type", "TimeoutError")
		rec.Attributes().PutStr("code.function.name", "payment.Charge")
		rec.Attributes().PutStr("exception.message", "deadline of 250 ms exceeded while waiting for northpay")
	}
	enc, err := r.MarshalProto()
	if err != nil {
		b.Fatal(err)
	}
	b.Run("FromOTLP", func(b *testing.B) {
		for b.Loop() {
			if _, err := FromOTLP(enc, Meta{Signal: SignalLogs}, Limits{}); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/records, "ns/record")
		b.ReportMetric(float64(len(enc))/records, "bytes/record")
	})
	b.Run("pdata", func(b *testing.B) {
		for b.Loop() {
			if err := plogotlp.NewExportRequest().UnmarshalProto(enc); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/records, "ns/record")
	})
}

// FuzzLogs compares with pdata: FromOTLP accepts a request exactly if pdata does and its encoding
// is valid, and counts the same records.
func FuzzLogs(f *testing.F) {
	f.Add(sampleLogs(f, 2))
	f.Add(logsRequest(f))
	f.Add([]byte("\x0a\x04\x12\x02\x12\x00"))
	f.Fuzz(func(t *testing.T, enc []byte) {
		oracle := plogotlp.NewExportRequest()
		oracleErr := oracle.UnmarshalProto(enc)
		b, err := FromOTLP(enc, Meta{Signal: SignalLogs}, unlimited())
		if limit := (*LimitError)(nil); errors.As(err, &limit) {
			return
		}
		if (err == nil) != (oracleErr == nil) && !isStrict(err) {
			t.Fatalf("pdata: %v\n we: %v\n%q", oracleErr, err, enc)
		}
		if err != nil {
			return
		}
		if b.Len() != oracle.Logs().LogRecordCount() {
			t.Fatalf("%d records; pdata has %d", b.Len(), oracle.Logs().LogRecordCount())
		}
		parts, err := b.Split(1, 0)
		if err != nil || len(parts) != b.Len() && b.Len() > 1 {
			t.Fatalf("%d parts of %d records: %v", len(parts), b.Len(), err)
		}
	})
}
