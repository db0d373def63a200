package column

import (
	"testing"
)

func BenchmarkStrings(b *testing.B) {
	for _, s := range stringSamples() {
		benchmark(b, s, (*Encoder).Strings, (*Decoder).Strings)
	}
}

func BenchmarkUint64s(b *testing.B) {
	for _, s := range numberSamples() {
		benchmark(b, s, (*Encoder).Uint64s, (*Decoder).Uint64s)
	}
}

func BenchmarkInt64s(b *testing.B) {
	for _, s := range intSamples() {
		benchmark(b, s, (*Encoder).Int64s, (*Decoder).Int64s)
	}
}

func BenchmarkFloat64s(b *testing.B) {
	for _, s := range floatSamples() {
		benchmark(b, s, (*Encoder).Float64s, (*Decoder).Float64s)
	}
}

func benchmark[T any](b *testing.B, s sample[T], encode func(*Encoder, []byte, []T) []byte, decode func(*Decoder, []byte, []T) error) {
	e, d := NewEncoder(Flush), NewDecoder()
	buf, out := encode(e, nil, s.v), make([]T, len(s.v))
	perValue := func(b *testing.B) {
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(s.v)), "ns/value")
		b.ReportMetric(0, "ns/op")
	}
	b.Run("encode/"+s.name, func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			buf = encode(e, buf[:0], s.v)
		}
		perValue(b)
		b.ReportMetric(float64(len(buf))/float64(len(s.v)), "B/value")
	})
	b.Run("decode/"+s.name, func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := decode(d, buf, out); err != nil {
				b.Fatal(err)
			}
		}
		perValue(b)
	})
}
