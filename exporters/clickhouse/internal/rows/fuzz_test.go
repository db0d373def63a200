package rows

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// payloadOf returns a row with given values.
func payloadOf(shape, rest string, texts []string, origin, name string, start, duration uint64, kind int32) *Payload {
	return &Payload{TraceID: otlpdata.TraceID{1}, SpanID: otlpdata.SpanID{2}, Start: start, Duration: duration, Kind: kind, Name: name,
		Origin: origin, Shape: shape, Texts: texts, Rest: rest}
}

// FuzzDecode checks that damaged rows give a DamagedError or a valid span with the ids of the row.
func FuzzDecode(f *testing.F) {
	g := generator{rand.New(rand.NewPCG(1, 3))}
	for range 8 {
		s := g.span()
		s.Raw = otlpdata.AppendSpan(nil, &s)
		var c cut
		c.span(nil, &s)
		texts := string(bytes.Join(c.texts, []byte("|")))
		f.Add(string(c.shape), string(c.rest), texts, "\x04\x0a\x02\x0a\x00\x00\x03\x0a\x01xurl", s.Name, s.Start, s.End-s.Start, s.Kind)
	}
	f.Add("", "", "", "", "", uint64(0), uint64(0), int32(0))
	f.Add("\x03\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "", "", "", "x", uint64(1), uint64(1), int32(-1))
	f.Fuzz(func(t *testing.T, shape, rest, texts, origin, name string, start, duration uint64, kind int32) {
		var d Decoder
		var list []string
		if texts != "" {
			list = strings.Split(texts, "|")
		}
		p := payloadOf(shape, rest, list, origin, name, start, duration, kind)
		s, err := d.Span(p)
		if err != nil {
			if e := (*tracestore.DamagedError)(nil); !errors.As(err, &e) {
				t.Fatalf("error is %T: %v", err, err)
			}
			return
		}
		if s.TraceID != p.TraceID || s.SpanID != p.SpanID || s.Resource == nil || s.Scope == nil {
			t.Fatalf("span of another row: %+v", s)
		}
	})
}

// FuzzEncode checks that the rows of every valid request give its spans back.
func FuzzEncode(f *testing.F) {
	for seed := range uint64(4) {
		g := generator{rand.New(rand.NewPCG(seed, 4))}
		chunk, err := g.batch(f, 3).Encoded()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(chunk)
	}
	f.Fuzz(func(t *testing.T, chunk []byte) {
		b, err := otlpdata.FromOTLP(chunk, otlpdata.Meta{Tenant: "acme"}, otlpdata.Limits{})
		if err != nil {
			return
		}
		checkRoundTrip(t, b, true)
	})
}
