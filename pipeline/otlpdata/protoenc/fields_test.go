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

// What pdata accepts against the format does not hide the fields after it.
func TestLenientFields(t *testing.T) {
	last := protoenc.AppendString(nil, 1, "a")
	for name, first := range map[string][]byte{
		"group, of which pdata takes the first field": {14<<3 | 3, 13 << 3, 5},
		"nested groups":           {14<<3 | 3, 2<<3 | 3, 2<<3 | 4, 14<<3 | 4},
		"varint with excess bits": {2 << 3, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f},
		"large field number":      {0xf8, 0xff, 0xff, 0xff, 0x3f, 5},
	} {
		var fields []protoenc.Field
		for f := range protoenc.Fields(append(first, last...)) {
			fields = append(fields, f)
		}
		if len(fields) != 2 || !bytes.Equal(fields[0].Raw, first) || fields[1].Num != 1 || string(fields[1].Content) != "a" {
			t.Errorf("%s: %+v", name, fields)
		}
	}
	for name, message := range map[string][]byte{
		"end of a group": {14<<3 | 4}, "group without end": {14<<3 | 3, 14<<3 | 3}, "field number 0": {0, 1},
		"long varint": bytes.Repeat([]byte{0xff}, 11),
		"long value":  {1<<3 | 2, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 1},
	} {
		for f := range protoenc.Fields(message) {
			if f.Num != 0 || !bytes.Equal(f.Raw, message) {
				t.Errorf("%s: %+v", name, f)
			}
		}
	}
}
