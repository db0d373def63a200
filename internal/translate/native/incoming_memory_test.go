package native

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"
	"unsafe"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// inProto wraps content in fields of these numbers, the last one innermost.
func inProto(content []byte, nums ...protowire.Number) []byte {
	for i := len(nums) - 1; i >= 0; i-- {
		content = protowire.AppendBytes(protowire.AppendTag(nil, nums[i], protowire.BytesType), content)
	}
	return content
}

// inThrift returns a batch of one compact span whose list (the field with this header) has n
// elements.
func inThrift(t testing.TB, header, element string, n int) []byte {
	list := protowire.AppendVarint(unhex(t, header+"fc"), uint64(n))
	list = append(list, bytes.Repeat(unhex(t, element), n)...)
	return append(append(unhex(t, "1c180000 191c"+compactSpan), list...), 0, 0)
}

// greedy returns inputs whose output or memory is much larger than the input.
func greedy(t testing.TB) map[string][]byte {
	const n = 100_000
	repeat := func(s string) []byte { return bytes.Repeat(unhex(t, s), n) }
	alternating := func(process []byte) []byte {
		return append(inProto(append(inProto(process, 2), repeat("0a00 0a025200")...), 1), 0x2a, 0)
	}
	spans := protowire.AppendVarint(unhex(t, "1c180000 19fc"), n)
	return map[string][]byte{
		"compact tags":            inThrift(t, "19", "1800 1500 00", n),
		"compact unknown tags":    inThrift(t, "19", "1800 157e 00", n),
		"compact references":      inThrift(t, "090c", "1502 1602 1602 1602 00", n),
		"compact logs":            inThrift(t, "29", "1602 190c 00", n),
		"compact spans":           append(append(spans, repeat("1602 1602 1602 1602 1800 2501 1602 1602 00")...), 0),
		"proto tags":              inProto(repeat("4200"), 1, 1),
		"proto unknown tags":      inProto(repeat("42021007"), 1, 1),
		"proto tags of 5 bytes":   inProto(repeat("42030a0161"), 1, 1),
		"proto references":        inProto(repeat("2200"), 1, 1),
		"proto links":             inProto(repeat("220a1208000000000000000 1"), 1, 1),
		"proto logs":              inProto(repeat("4a00"), 1, 1),
		"proto fields of logs":    inProto(repeat("4a021200"), 1, 1),
		"proto warnings":          inProto(repeat("6200"), 1, 1),
		"proto spans":             inProto(repeat("0a0428036200"), 1),
		"proto processes":         inProto(repeat("0a025200"), 1),
		"proto process tags":      inProto(repeat("1200"), 1, 2),
		"proto process in pieces": inProto(append([]byte{0x0a, 0}, repeat("1205 12030a0161 1200")...), 1),
		"alternating, large":      alternating(bytes.Repeat(unhex(t, "12060a01611a0162"), 1000)),
		"alternating, small":      alternating(unhex(t, "12021007")),
	}
}

// held returns the number of bytes that the translator has allocated and still holds.
func (t *translator) held() int {
	s := &t.span
	const keyValue = int(unsafe.Sizeof(otlpdata.KeyValue{}))
	return keyValue*(cap(s.Attributes)+cap(t.nested)+cap(t.process.tags)) + cap(s.Events)*int(unsafe.Sizeof(otlpdata.Event{})) +
		cap(s.Links)*int(unsafe.Sizeof(otlpdata.Link{})) + cap(t.refs)*int(unsafe.Sizeof(reference{})) + cap(t.text) + cap(t.warnings) +
		cap(t.out.Bytes())
}

// checkGrowth checks the limits MaxGrowth and MaxWorkGrowth for n bytes of input. While a list
// grows, its old and new memory exist together.
func checkGrowth(t *testing.T, n int, tr *translator) {
	t.Helper()
	if got, most := len(tr.output()), MaxGrowth*n+64; got > most {
		t.Errorf("%d bytes became %d, more than %d", n, got, most)
	}
	if got, most := 2*tr.held(), MaxWorkGrowth*n+256<<10; got > most {
		t.Errorf("%d bytes took %d to translate, more than %d", n, got, most)
	}
}

// Output and memory are proportional to the input, for every input.
func TestGrowth(t *testing.T) {
	for name, in := range greedy(t) {
		t.Run(name, func(t *testing.T) {
			var tr translator
			var err error
			if strings.HasPrefix(name, "compact") {
				r := thriftReader{b: in, compact: true}
				tr.thriftBatch(&r, &Batch{})
				err = r.err
			} else {
				err = tr.postSpans(in, 0)
			}
			t.Logf("%d bytes: output %.1f, held %.1f, %v", len(in), float64(len(tr.output()))/float64(len(in)),
				float64(tr.held())/float64(len(in)), err)
			checkGrowth(t, len(in), &tr)
		})
	}
}

// A translation stops soon after its output exceeds the limit.
func TestOutputLimit(t *testing.T) {
	in := greedy(t)["proto spans"]
	whole, err := FromPostSpans(in, 0)
	if err != nil {
		t.Fatal(err)
	}
	for most, want := range map[int]error{len(in): ErrOutputTooLarge, len(whole) - 100: ErrOutputTooLarge,
		len(whole): nil, 2 * len(whole): nil} {
		if got, err := FromPostSpans(in, most); err != want || err == nil && !bytes.Equal(got, whole) {
			t.Errorf("limit %d of %d bytes: got %d bytes, error %v", most, len(whole), len(got), err)
		}
	}
	var tr translator
	if err := tr.postSpans(in, len(in)); err != ErrOutputTooLarge || tr.out.Len() > len(in)+200 {
		t.Errorf("got %d bytes with a limit of %d, error %v", tr.out.Len(), len(in), err)
	}
}
