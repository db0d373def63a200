package zipkin

import (
	"encoding/hex"
	"strings"
	"testing"
)

// TestParseHex puts each byte at each position of a long and a short id.
func TestParseHex(t *testing.T) {
	for _, length := range []int{16, 11, 3} {
		for at := range length {
			for c := range 256 {
				text := []byte(strings.Repeat("9aF", 6)[:length])
				text[at] = byte(c)
				var want, got [8]byte
				_, err := hex.Decode(want[:], []byte(strings.Repeat("0", 16-length)+string(text)))
				if ok := parseHex(got[:], string(text)); ok != (err == nil) || ok && got != want {
					t.Fatalf("%q: got %x, %v; want %x, %v", text, got, ok, want, err)
				}
			}
		}
	}
	for _, text := range []string{"", "00000000000000001", strings.Repeat("0", 33)} {
		if parseHex(make([]byte, 8), text) {
			t.Errorf("%q was accepted", text)
		}
	}
}
