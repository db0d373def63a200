package protoenc_test

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/tracing-backend/tracing/pipeline/otlpdata/protoenc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// lengths are those around which a length takes one more byte.
var lengths = []int{0, 1, 126, 127, 128, 129, 16382, 16383, 16384, 1<<21 - 1, 1 << 21}

func TestFieldsAgainstProtowire(t *testing.T) {
	for num := range 15 {
		num++
		number := protowire.Number(num)
		for _, n := range lengths {
			text := strings.Repeat("x", n)
			want := protowire.AppendString(protowire.AppendTag(nil, number, protowire.BytesType), text)
			check(t, "bytes", protoenc.AppendBytes(nil, num, []byte(text)), want, protoenc.SizeBytes(n))
			check(t, "header", append(protoenc.AppendHeader(nil, num, n), text...), want, len(want))
			if n == 0 {
				want = nil
			}
			check(t, "string", protoenc.AppendString(nil, num, text), want, protoenc.SizeString(text))
		}
		for _, v := range []uint64{0, 1, 127, 128, 1<<14 - 1, 1 << 14, 1 << 62, math.MaxUint64} {
			var varint, fixed []byte
			if v > 0 {
				varint = protowire.AppendVarint(protowire.AppendTag(nil, number, protowire.VarintType), v)
				fixed = protowire.AppendFixed64(protowire.AppendTag(nil, number, protowire.Fixed64Type), v)
			}
			check(t, "varint", protoenc.AppendUint(nil, num, v), varint, protoenc.SizeUint(v))
			check(t, "fixed64", protoenc.AppendFixed64(nil, num, v), fixed, len(fixed))
		}
	}
}

func check(t *testing.T, what string, got, want []byte, size int) {
	t.Helper()
	if !bytes.Equal(got, want) {
		t.Errorf("%s: got %.40x (%d bytes), want %.40x (%d bytes)", what, got, len(got), want, len(want))
	}
	if size != len(want) {
		t.Errorf("%s: size %d, want %d", what, size, len(want))
	}
}

func TestMessages(t *testing.T) {
	for reserved := range 5 {
		for _, n := range lengths {
			content := bytes.Repeat([]byte("x"), n)
			dst, at := protoenc.BeginMessage([]byte("before"), 15, reserved)
			got, ok := bytes.CutPrefix(protoenc.EndMessage(append(dst, content...), at, reserved), []byte("before"))
			if !ok {
				t.Fatalf("%d bytes reserved, content of %d bytes: the bytes before the message changed", reserved, n)
			}
			want := protoenc.AppendBytes(nil, 15, content)
			check(t, "message", got, want, protoenc.SizeBytes(n))
		}
	}
}
