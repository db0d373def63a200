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

// The state of adaptive sampling is one file: a line with the version and the checksum of the rest,
// then zstd-compressed JSON. It is rewritten a few times a minute, whenever something is added. A
// busy collector's file has about 1 MB, which is 17 MB of JSON.
const (
	samplingFile    = "sampling.state"
	samplingLine    = "tracing sampling state, version %d, crc32c %08x\n"
	samplingVersion = 1
	// maxSamplingText bounds the JSON: about 500,000 rows. Beyond it, the oldest intervals are
	// dropped.
	maxSamplingText = 64 << 20
	maxSamplingFile = maxSamplingText + 1<<20 // plus the first line and incompressible text
)

var _ sampling.Store = (*exporter)(nil)

// samplingStore is a [sampling.Memory] that is saved to a file. Leases are not saved: no other
// process uses the folder.
type samplingStore struct {
	*sampling.Memory
	file string

	changing sync.Mutex // held while something is added and saved
	fs       vfs.FS     // nil unless the store is open; guarded by changing
}

var (
	errSamplingClosed  = errors.New("span store is not open")
	errSamplingTooBig  = fmt.Errorf("adaptive sampling state exceeds %d bytes", maxSamplingText)
	errSamplingDamaged = errors.New("checksum mismatch")
	samplingSums       = crc32.MakeTable(crc32.Castagnoli)
)

func newSamplingStore(dir string, now func() time.Time) *samplingStore {
	return &samplingStore{Memory: sampling.NewMemory(now), file: path.Join(dir, samplingFile)}
}

// AddThroughput implements sampling.ThroughputStore. The data is durable when it returns nil.
func (s *samplingStore) AddThroughput(ctx context.Context, t sampling.Throughput, since time.Time) error {
	return s.change(func() error { return s.Memory.AddThroughput(ctx, t, since) })
}

// SaveCalculation implements sampling.CalculationStore. The calculation is durable when it returns
// nil.
func (s *samplingStore) SaveCalculation(ctx context.Context, c *sampling.Calculation) error {
	return s.change(func() error { return s.Memory.SaveCalculation(ctx, c) })
}

func (s *samplingStore) change(add func() error) error {
	s.changing.Lock()
	defer s.changing.Unlock()
	if s.fs == nil {
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

// load reads the file, if it exists, and allows additions. After damage the state is empty.
func (s *samplingStore) load(fsys vfs.FS) (damage, err error) {
	s.changing.Lock()
	defer s.changing.Unlock()
	b, err := vfs.ReadFile(fsys, s.file, maxSamplingFile)
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
	if err == nil {
		s.fs = fsys
	}
	return damage, err
}

// close rejects further additions.
func (s *samplingStore) close() {
	s.changing.Lock()
	defer s.changing.Unlock()
	s.fs = nil
}

func encodeSampling(state sampling.State) ([]byte, error) {
	text, err := samplingText(state, maxSamplingText)
	if err != nil {
		return nil, err
	}
	w, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, fmt.Errorf("compressing adaptive sampling state: %w", err)
	}
	body := w.EncodeAll(text, nil)
	out := fmt.Appendf(nil, samplingLine, samplingVersion, crc32.Checksum(body, samplingSums))
	return append(out, body...), nil
}

// samplingText returns the state as JSON of at most limit bytes, dropping the oldest intervals if
// necessary.
func samplingText(state sampling.State, limit int) ([]byte, error) {
	for {
		text, err := json.Marshal(state)
		if err != nil {
			return nil, fmt.Errorf("encoding adaptive sampling state: %w", err)
		}
		if len(text) <= limit {
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
		return state, fmt.Errorf("adaptive sampling state: invalid first line: %w", err)
	}
	if version != samplingVersion {
		return state, fmt.Errorf("adaptive sampling state: unsupported version %d; this program reads version %d", version, samplingVersion)
	}
	if crc32.Checksum(body, samplingSums) != sum {
		return state, errSamplingDamaged
	}
	r, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxSamplingText))
	if err != nil {
		return state, fmt.Errorf("reading adaptive sampling state: %w", err)
	}
	defer r.Close()
	text, err := r.DecodeAll(body, nil)
	if err != nil {
		return state, fmt.Errorf("reading adaptive sampling state: %w", err)
	}
	if err := json.Unmarshal(text, &state); err != nil {
		return state, fmt.Errorf("reading adaptive sampling state: %w", err)
	}
	return state, nil
}

// restore restores the state of adaptive sampling. A damaged file is moved to the quarantine;
// operations then restart with the initial probability.
func (s *samplingStore) restore(c *common) error {
	damage, err := s.load(c.dir.FS())
	if err != nil {
		return err
	}
	if damage == nil {
		return nil
	}
	to, err := c.dir.Quarantine(s.file)
	if err != nil {
		return fmt.Errorf("adaptive sampling state cannot be read (%w) and cannot be moved to quarantine: %w", damage, err)
	}
	c.log.Error("adaptive sampling state cannot be read; moved to quarantine; starting without it",
		zap.String("file", to), zap.Error(damage))
	return nil
}
