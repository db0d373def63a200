package otlpdata

import (
	"math/rand/v2"
	"testing"

	"github.com/tracing-backend/tracing/pipeline/otlpdata/protoenc"
)

// A generator writes random requests by the schema, with random deviations. Unlike random changes
// of bytes, most of its deviations are deep inside of nested messages.
type generator struct {
	*rand.Rand
	odd float64 // probability of each kind of deviation, per field
}

type shape uint8

const (
	shapeText shape = iota
	shapeTraceID
	shapeSpanID
	shapeVarint
	shape64
	shape32
	shapeMessage
)

type fieldSpec struct {
	num   uint64
	shape shape
	most  int // maximum number of occurrences
	sub   *messageSpec
}

type messageSpec struct{ fields []fieldSpec }

func requestSpec() *messageSpec {
	value, array, list, kv := &messageSpec{}, &messageSpec{}, &messageSpec{}, &messageSpec{}
	kv.fields = []fieldSpec{{1, shapeText, 1, nil}, {2, shapeMessage, 1, value}}
	array.fields = []fieldSpec{{1, shapeMessage, 3, value}}
	list.fields = []fieldSpec{{1, shapeMessage, 3, kv}}
	value.fields = []fieldSpec{{1, shapeText, 1, nil}, {2, shapeVarint, 1, nil}, {3, shapeVarint, 1, nil}, {4, shape64, 1, nil},
		{5, shapeMessage, 1, array}, {6, shapeMessage, 1, list}, {7, shapeText, 1, nil}, {8, shapeVarint, 1, nil}}
	event := &messageSpec{[]fieldSpec{{1, shape64, 1, nil}, {2, shapeText, 1, nil}, {3, shapeMessage, 3, kv}, {4, shapeVarint, 1, nil}}}
	link := &messageSpec{[]fieldSpec{{1, shapeTraceID, 1, nil}, {2, shapeSpanID, 1, nil}, {3, shapeText, 1, nil},
		{4, shapeMessage, 2, kv}, {5, shapeVarint, 1, nil}, {6, shape32, 1, nil}}}
	status := &messageSpec{[]fieldSpec{{2, shapeText, 1, nil}, {3, shapeVarint, 1, nil}}}
	span := &messageSpec{[]fieldSpec{{1, shapeTraceID, 1, nil}, {2, shapeSpanID, 1, nil}, {3, shapeText, 1, nil}, {4, shapeSpanID, 1, nil},
		{5, shapeText, 1, nil}, {6, shapeVarint, 1, nil}, {7, shape64, 1, nil}, {8, shape64, 1, nil}, {9, shapeMessage, 5, kv},
		{10, shapeVarint, 1, nil}, {11, shapeMessage, 3, event}, {12, shapeVarint, 1, nil}, {13, shapeMessage, 2, link},
		{14, shapeVarint, 1, nil}, {15, shapeMessage, 2, status}, {16, shape32, 1, nil}}}
	entity := &messageSpec{[]fieldSpec{{1, shapeText, 1, nil}, {2, shapeText, 1, nil}, {3, shapeText, 2, nil}, {4, shapeText, 2, nil}}}
	resource := &messageSpec{[]fieldSpec{{1, shapeMessage, 4, kv}, {2, shapeVarint, 1, nil}, {3, shapeMessage, 1, entity}}}
	scope := &messageSpec{[]fieldSpec{{1, shapeText, 1, nil}, {2, shapeText, 1, nil}, {3, shapeMessage, 2, kv}, {4, shapeVarint, 1, nil}}}
	spans := &messageSpec{[]fieldSpec{{1, shapeMessage, 2, scope}, {2, shapeMessage, 3, span}, {3, shapeText, 1, nil}}}
	group := &messageSpec{[]fieldSpec{{1, shapeMessage, 2, resource}, {2, shapeMessage, 2, spans}, {3, shapeText, 1, nil},
		{1000, shapeMessage, 1, spans}}}
	return &messageSpec{[]fieldSpec{{1, shapeMessage, 2, group}}}
}

func (g *generator) is(p float64) bool { return g.Float64() < p }

func (g *generator) message(m *messageSpec, depth int) []byte {
	var parts [][]byte
	for _, f := range m.fields {
		for range g.IntN(f.most + 1) {
			if f.sub == nil || depth > 0 {
				parts = append(parts, g.field(f, depth))
			}
		}
	}
	if g.is(g.odd) {
		parts = append(parts, g.unknown())
	}
	if g.is(0.1) {
		g.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
	}
	return cat(parts...)
}

func (g *generator) field(f fieldSpec, depth int) []byte {
	if g.is(g.odd) {
		f.shape = shape(g.IntN(int(shapeMessage)))
	}
	switch f.shape {
	case shapeTraceID:
		return g.bytes(f.num, g.id(16))
	case shapeSpanID:
		return g.bytes(f.num, g.id(8))
	case shapeVarint:
		v := g.Uint64() >> g.IntN(64)
		if g.is(g.odd) {
			return cat(tag(f.num, protoenc.Varint), longVarint(v, 1+g.IntN(11)))
		}
		return fieldVarint(f.num, v)
	case shape64:
		return field64(f.num, g.Uint64())
	case shape32:
		return field32(f.num, g.Uint32())
	case shapeMessage:
		return g.bytes(f.num, g.message(f.sub, depth-1))
	}
	return g.bytes(f.num, g.text())
}

func (g *generator) bytes(num uint64, b []byte) []byte {
	head := tag(num, protoenc.Length)
	if g.is(g.odd) {
		head = longVarint(num<<3|protoenc.Length, 1+g.IntN(11))
	}
	length := uint64(len(b))
	if g.is(g.odd) {
		length += uint64(g.IntN(5)) - 2
	}
	if g.is(g.odd) {
		return cat(head, longVarint(length, 1+g.IntN(11)), b)
	}
	return cat(head, fieldLen(1, b)[1:]) // the length and the bytes
}

func (g *generator) id(size int) []byte {
	if g.is(g.odd) {
		size = g.IntN(20)
	}
	id := make([]byte, size)
	for i := range id {
		id[i] = byte(g.Uint32() >> g.IntN(9))
	}
	return id
}

func (g *generator) text() []byte {
	words := []string{"", "service.name", "a", "key", "\xff", "\u2028", "GET /cart/{id}", "Grüße, 世界"}
	if g.is(0.02) {
		return make([]byte, g.IntN(300))
	}
	return []byte(words[g.IntN(len(words))])
}

// unknown returns a field that no message has, or rarely what is not a field.
func (g *generator) unknown() []byte {
	num := 17 + g.Uint64()>>(36+g.IntN(28))
	switch {
	case g.is(0.05):
		return tag(g.Uint64()>>g.IntN(64), byte(g.IntN(8)))
	case g.is(0.05):
		return cat(tag(num, protoenc.StartGroup), tag(num, protoenc.EndGroup))
	case g.is(0.3):
		return fieldVarint(num, g.Uint64()>>g.IntN(64))
	case g.is(0.5):
		return fieldLen(num, g.text())
	}
	return field32(num, 1)
}

// corrupt changes random bytes of b.
func (g *generator) corrupt(b []byte) []byte {
	for range 1 + g.IntN(3) {
		if len(b) == 0 {
			return b
		}
		from := g.IntN(len(b))
		to := min(len(b), from+1+g.IntN(8))
		switch g.IntN(5) {
		case 0:
			b[from] ^= 1 << g.IntN(8)
		case 1:
			b[from] = byte(g.Uint32())
		case 2:
			b = cat(b[:from], b[to:])
		case 3:
			b = cat(b[:to], b[from:])
		case 4:
			b = b[:from]
		}
	}
	return b
}

// TestGeneratedRequests compares with pdata on valid, nearly valid and corrupted requests.
func TestGeneratedRequests(t *testing.T) {
	rounds := 3000
	if testing.Short() {
		rounds = 300
	}
	spec := requestSpec()
	for _, kind := range []struct {
		name            string
		odd             float64
		corrupt         bool
		atLeast, atMost float64 // bounds of the accepted share
	}{
		{"valid", 0, false, 1, 1},
		{"nearly valid", 0.002, false, 0.2, 0.9},
		{"odd", 0.03, false, 0, 0.5},
		{"corrupted", 0.0005, true, 0.02, 0.8},
	} {
		t.Run(kind.name, func(t *testing.T) {
			accepted := 0
			for i := range rounds {
				g := &generator{rand.New(rand.NewPCG(uint64(i), 1)), kind.odd}
				b := g.message(spec, 3+g.IntN(6))
				if kind.corrupt {
					b = g.corrupt(b)
				}
				if checkAgainstPdata(t, b) {
					accepted++
				}
			}
			if share := float64(accepted) / float64(rounds); share < kind.atLeast || share > kind.atMost {
				t.Errorf("accepted share is %.2f, want %.2f to %.2f for a meaningful test", share, kind.atLeast, kind.atMost)
			}
		})
	}
}
