package disk

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"path"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"
	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/pipeline/sampling"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
)

// What adaptive sampling learns is in one file, which is written anew, a few times a minute, whenever something is added: a line with the
// version and the checksum of what follows, and that as JSON, compressed with zstd: of a busy collector 1 MB, which is 17 MB as text.
const (
	samplingFile    = "sampling.state"
	samplingLine    = "tracing sampling state, version %d, crc32c %08x\n"
	samplingVersion = 1
	// maxSamplingText bounds the text: some 500,000 rows. Of what is beyond, the oldest intervals go.
	maxSamplingText = 64 << 20
	maxSamplingFile = maxSamplingText + 1<<20 // the first line, and a text that cannot be compressed
)

var _ sampling.Store = (*exporter)(nil)

// samplingStore is a [sampling.Memory] that a file follows. Leases are not in the file: no other process has the folder.
type samplingStore struct {
	*sampling.Memory
	fs   vfs.FS
	file string

	turn sync.Mutex // held while something is added and written
	open bool       // guarded by turn
}

var (
	errSamplingClosed  = errors.New("the span store is not open")
	errSamplingTooBig  = fmt.Errorf("what adaptive sampling learned takes more than %d bytes", maxSamplingText)
	errSamplingDamaged = errors.New("the checksum is wrong")
	samplingSums       = crc32.MakeTable(crc32.Castagnoli)
)

func newSamplingStore(fsys vfs.FS, dir string, now func() time.Time) *samplingStore {
	return &samplingStore{Memory: sampling.NewMemory(now), fs: fsys, file: path.Join(dir, samplingFile)}
}

// AddThroughput implements sampling.Throughputs. What it was told is durable when it returns nil.
func (s *samplingStore) AddThroughput(ctx context.Context, t sampling.Throughput, since time.Time) error {
	return s.change(func() error { return s.Memory.AddThroughput(ctx, t, since) })
}

// SaveCalculation implements sampling.Ledger. The calculation is durable when it returns nil.
func (s *samplingStore) SaveCalculation(ctx context.Context, c *sampling.Calculation) error {
	return s.change(func() error { return s.Memory.SaveCalculation(ctx, c) })
}

func (s *samplingStore) change(add func() error) error {
	s.turn.Lock()
	defer s.turn.Unlock()
	if !s.open {
		return errSamplingClosed
	}
	if err := add(); err != nil {
		return err
	}
	b, err := encodeSampling(s.State())
	if err != nil {
		return err
	}
	return vfs.WriteFileAtomic(s.fs, s.file, b)
}

// load reads the file, if there is one, and lets things be added. After an error that is damage, it is as if there had been none.
func (s *samplingStore) load() (damage, err error) {
	s.turn.Lock()
	defer s.turn.Unlock()
	b, err := vfs.ReadFile(s.fs, s.file, maxSamplingFile)
	switch {
	case errors.Is(err, vfs.ErrTooLarge):
		damage, err = err, nil
	case errors.Is(err, fs.ErrNotExist):
		err = nil
	case err == nil:
		var state sampling.State
		if state, damage = decodeSampling(b); damage == nil {
			damage = s.Restore(state)
		}
	}
	s.open = err == nil
	return damage, err
}

// close lets nothing be added any more.
func (s *samplingStore) close() {
	s.turn.Lock()
	defer s.turn.Unlock()
	s.open = false
}

func encodeSampling(state sampling.State) ([]byte, error) {
	text, err := samplingText(state, maxSamplingText)
	if err != nil {
		return nil, err
	}
	w, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, fmt.Errorf("compressing what adaptive sampling learned: %w", err)
	}
	body := w.EncodeAll(text, nil)
	out := fmt.Appendf(nil, samplingLine, samplingVersion, crc32.Checksum(body, samplingSums))
	return append(out, body...), nil
}

// samplingText returns a state as text of at most so many bytes, without the oldest intervals if it would be longer.
func samplingText(state sampling.State, most int) ([]byte, error) {
	for {
		text, err := json.Marshal(state)
		if err != nil {
			return nil, fmt.Errorf("encoding what adaptive sampling learned: %w", err)
		}
		if len(text) <= most {
			return text, nil
		}
		n := len(state.Throughputs)
		if n == 0 {
			return nil, errSamplingTooBig
		}
		state.Throughputs = state.Throughputs[n-n/2:]
	}
}

func decodeSampling(b []byte) (state sampling.State, err error) {
	line, body, _ := bytes.Cut(b, []byte("\n"))
	var version int
	var sum uint32
	if _, err := fmt.Sscanf(string(line)+"\n", samplingLine, &version, &sum); err != nil {
		return state, fmt.Errorf("the first line is not that of a sampling state: %w", err)
	}
	if version != samplingVersion {
		return state, fmt.Errorf("it has version %d, and this program reads version %d", version, samplingVersion)
	}
	if crc32.Checksum(body, samplingSums) != sum {
		return state, errSamplingDamaged
	}
	r, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxSamplingText))
	if err != nil {
		return state, fmt.Errorf("reading a sampling state: %w", err)
	}
	defer r.Close()
	text, err := r.DecodeAll(body, nil)
	if err != nil {
		return state, fmt.Errorf("reading a sampling state: %w", err)
	}
	if err := json.Unmarshal(text, &state); err != nil {
		return state, fmt.Errorf("reading a sampling state: %w", err)
	}
	return state, nil
}

// loadSampling brings back what adaptive sampling learned. A damaged file is set aside: operations then begin with the initial probability.
func (e *exporter) loadSampling() error {
	damage, err := e.samplingStore.load()
	if err != nil {
		return err
	}
	if damage == nil {
		return nil
	}
	to, err := e.dir.Quarantine(e.samplingStore.file)
	if err != nil {
		return fmt.Errorf("what adaptive sampling learned cannot be read (%w), and: %w", damage, err)
	}
	e.log.Error("what adaptive sampling learned cannot be read and was set aside: it begins anew",
		zap.String("file", to), zap.Error(damage))
	return nil
}
