package server

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"golang.org/x/net/http2"
)

// FuzzFrameScanner checks that frames are found however their bytes are cut into pieces, and that
// memory is bounded.
func FuzzFrameScanner(f *testing.F) {
	var b bytes.Buffer
	fr := http2.NewFramer(&b, nil)
	if err := errors.Join(fr.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 20}),
		fr.WriteWindowUpdate(3, 100), fr.WriteData(3, true, []byte("data")), fr.WriteRSTStream(3, http2.ErrCodeCancel)); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes(), uint(1))
	f.Add(b.Bytes(), uint(7))
	type found struct {
		http2.FrameHeader
		payload string
	}
	f.Fuzz(func(t *testing.T, data []byte, piece uint) {
		scan := func(size int) (all []found) {
			var s frameScanner
			for p := range slices.Chunk(data, size) {
				s.scan(p, func(f http2.FrameHeader, payload []byte) { all = append(all, found{f, string(payload)}) })
				if cap(s.payload) > 2*maxFramePayload || len(s.header) > frameHeaderLen {
					t.Fatalf("%d bytes of a payload", cap(s.payload))
				}
			}
			return all
		}
		whole, pieces := scan(max(1, len(data))), scan(int(piece%64+1))
		if !slices.Equal(whole, pieces) {
			t.Errorf("whole %v, in pieces %v", whole, pieces)
		}
	})
}
