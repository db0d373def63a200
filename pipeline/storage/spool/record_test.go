package spool

import (
	"bytes"
	"testing"
	"time"
)

// Any bytes are either a record that encodes back to itself, or an error.
func FuzzReadRecord(f *testing.F) {
	f.Add([]byte{})
	f.Add(append(itemHead(time.Unix(1, 2), 3), "payload"...))
	f.Add(itemHead(time.Unix(-1, 0), -1))
	f.Add(doneRecord(doneItem{4, 5}))
	f.Add(append([]byte{3}, make([]byte, headSize)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := readRecord(b)
		if err != nil {
			if len(b) >= headSize && (b[0] == kindItem || b[0] == kindDone) {
				t.Errorf("%v", err)
			}
			return
		}
		switch r.kind {
		case kindItem:
			if r.weight < 0 {
				t.Errorf("weight %d", r.weight)
			}
			again := append(itemHead(r.since, r.weight), r.payload...)
			if int64(len(b)) != int64(len(again)) || !bytes.Equal(again[:9], b[:9]) || !bytes.Equal(again[headSize:], b[headSize:]) {
				t.Errorf("%x became %x", b, again)
			}
		case kindDone:
			if again := doneRecord(r.item); !bytes.Equal(again, b[:headSize]) {
				t.Errorf("%x became %x", b, again)
			}
		default:
			t.Errorf("kind %d", r.kind)
		}
	})
}
