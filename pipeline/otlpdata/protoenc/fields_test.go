package protoenc_test

import (
	"bytes"
	"testing"

	"github.com/tracing-backend/tracing/pipeline/otlpdata/protoenc"
)

func TestFields(t *testing.T) {
	message := protoenc.AppendString(nil, 1, "a")
	message = protoenc.AppendUint(message, 2, 300)
	message = protoenc.AppendString(message, 3, "b")
	message = append(message, 0xff)
	var nums []int
	var raw, content []byte
	count := func() {
		nums, raw, content = nums[:0], raw[:0], content[:0]
		for f := range protoenc.Fields(message) {
			nums, raw, content = append(nums, f.Num), append(raw, f.Raw...), append(content, f.Content...)
		}
	}
	count()
	if len(nums) != 4 || nums[0] != 1 || nums[1] != 2 || nums[2] != 3 || nums[3] != 0 || string(content) != "ab" {
		t.Errorf("fields %v with contents %q, want fields 1, 2, 3, 0 with contents ab", nums, content)
	}
	if !bytes.Equal(raw, message) {
		t.Errorf("fields are % x, want the whole message % x", raw, message)
	}
	if n := testing.AllocsPerRun(10, count); n > 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

// Fields yields what decoders reject as a field with number 0.
func TestInvalidFields(t *testing.T) {
	for name, message := range map[string][]byte{
		"group": {14<<3 | 3, 14<<3 | 4}, "end of a group": {14<<3 | 4}, "group without end": {14<<3 | 3, 14<<3 | 3},
		"field number 0": {0, 1}, "field number 2^29": {0x80, 0x80, 0x80, 0x80, 0x10, 5},
		"long varint":             bytes.Repeat([]byte{0xff}, 11),
		"varint with excess bits": {2 << 3, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02},
		"long value":              {1<<3 | 2, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, 1},
	} {
		for f := range protoenc.Fields(message) {
			if f.Num != 0 || !bytes.Equal(f.Raw, message) {
				t.Errorf("%s: %+v", name, f)
			}
		}
	}
}
