package otlpdata

import (
	"testing"

	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
)

// metricsRequest returns a request with 2 data points of each type.
func metricsRequest(tb testing.TB) []byte {
	md := pmetric.NewMetrics()
	for range 2 {
		sm := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty()
		sm.Scope().SetName("scope")
		sm.Metrics().AppendEmpty().SetEmptyGauge().DataPoints().AppendEmpty().SetIntValue(1)
		sm.Metrics().AppendEmpty().SetEmptySum().DataPoints().AppendEmpty().SetDoubleValue(1)
		sm.Metrics().AppendEmpty().SetEmptyHistogram().DataPoints().AppendEmpty().BucketCounts().FromRaw([]uint64{1, 2})
		sm.Metrics().AppendEmpty().SetEmptyExponentialHistogram().DataPoints().AppendEmpty().SetCount(1)
		sm.Metrics().AppendEmpty().SetEmptySummary().DataPoints().AppendEmpty().SetCount(1)
	}
	b, err := pmetricotlp.NewExportRequestFromMetrics(md).MarshalProto()
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func logsRequest(tb testing.TB) []byte {
	r := plogotlp.NewExportRequest()
	for range 3 {
		r.Logs().ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty().Body().SetStr("text")
	}
	b, err := r.MarshalProto()
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func TestCountOtherSignals(t *testing.T) {
	if n, err := CountDataPoints(metricsRequest(t)); n != 10 || err != nil {
		t.Errorf("%d data points, error %v", n, err)
	}
	if n, err := CountLogRecords(logsRequest(t)); n != 3 || err != nil {
		t.Errorf("%d log records, error %v", n, err)
	}
	for _, f := range []func([]byte) (int, error){CountDataPoints, CountLogRecords} {
		if n, err := f(nil); n != 0 || err != nil {
			t.Errorf("empty request: %d, error %v", n, err)
		}
		for _, garbage := range []string{"garbage", "\x0a\x05", "\x08\x01", "\x0a\x02\x10\x01"} {
			if n, err := f([]byte(garbage)); n != 0 || err == nil {
				t.Errorf("%q: %d", garbage, n)
			}
		}
	}
}

// Requests that pdata reads are counted, except for those with an invalid encoding. If a metric has
// data of two types, pdata keeps only the last, and has fewer data points.
func FuzzCountOtherSignals(f *testing.F) {
	f.Add(metricsRequest(f))
	f.Add(logsRequest(f))
	f.Add([]byte("\x0a\x02\x12\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		points, err := CountDataPoints(b)
		if r := pmetricotlp.NewExportRequest(); r.UnmarshalProto(b) == nil && !isStrict(err) &&
			(err != nil || points < r.Metrics().DataPointCount()) {
			t.Errorf("%d data points, error %v; pdata has %d", points, err, r.Metrics().DataPointCount())
		}
		records, err := CountLogRecords(b)
		if r := plogotlp.NewExportRequest(); r.UnmarshalProto(b) == nil && !isStrict(err) &&
			(err != nil || records != r.Logs().LogRecordCount()) {
			t.Errorf("%d log records, error %v; pdata has %d", records, err, r.Logs().LogRecordCount())
		}
	})
}
