package storetool

import (
	"bufio"
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// Whatever a file of an export contains, the reader returns requests within it, or an error.
func FuzzRequests(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x03abc\x00\x00\x00\x00\x00\x00\x00\x01x"))
	f.Add([]byte("\x00\x00\x00\x05abc"))
	f.Add([]byte("\xff\xff\xff\xff"))
	f.Add([]byte("\x00\x00"))
	f.Fuzz(func(t *testing.T, file []byte) {
		r := &requestReader{in: bufio.NewReader(bytes.NewReader(file))}
		for {
			before := r.offset
			list, err := r.next(3)
			if err != nil || len(list) == 0 {
				return
			}
			size := 4 * len(list)
			for _, one := range list {
				size += len(one)
			}
			if int64(size) != r.offset-before || r.offset > int64(len(file)) {
				t.Fatalf("read %d bytes, from %d to %d of %d", size, before, r.offset, len(file))
			}
		}
	})
}

// A journal that can be opened has the same content after it is opened again.
func FuzzJournal(f *testing.F) {
	f.Add("http://a\n12 x.pb\n40 x.pb\n5 date=1/y z.pb\n")
	f.Add("http://a\n12 x.pb\n40")
	f.Add("http://b\n")
	f.Add("http://a\n-1 x\n")
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		file := filepath.Join(t.TempDir(), journalName)
		check(t, os.WriteFile(file, []byte(text), 0o600))
		first, err := openJournal(file, "http://a")
		if err != nil {
			return
		}
		check(t, first.record("new file.pb", 7))
		first.close()
		again, err := openJournal(file, "http://a")
		check(t, err)
		again.close()
		if again.sent["new file.pb"] != 7 || len(again.sent) < len(first.sent) {
			t.Errorf("journal has %v, before %v", again.sent, first.sent)
		}
	})
}
