package disk

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"path"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/tracing-backend/tracing/pipeline/sampling"
	"github.com/tracing-backend/tracing/pipeline/sampling/samplingtest"
	"github.com/tracing-backend/tracing/pipeline/soak"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs/vfstest"
)

// openSampling opens a sampling store without an exporter.
func openSampling(tb testing.TB, fsys vfs.FS, now func() time.Time) *samplingStore {
	tb.Helper()
	if err := fsys.MkdirAll(folder); err != nil {
		tb.Fatal(err)
	}
	s := newSamplingStore(folder, now)
	if damage, err := s.load(fsys); damage != nil || err != nil {
		tb.Fatal(damage, err)
	}
	return s
}

func TestSamplingStore(t *testing.T) {
	samplingtest.Run(t, samplingtest.Options{
		New: func(t *testing.T, now func() time.Time) sampling.Store { return openSampling(t, vfstest.NewMem(), now) },
		Reopen: func(t *testing.T, s sampling.Store) sampling.Store {
			old := s.(*samplingStore)
			return openSampling(t, old.fs.(*vfstest.Mem).Crash(rand.New(rand.NewPCG(1, 2))), time.Now)
		},
	})
}

// The exporter keeps calculations across restarts and refuses them while it is stopped.
func TestSamplingInExporter(t *testing.T) {
	fsys := vfstest.NewMem()
	e := newSetup(fsys).start(t)
	if err := e.SaveCalculation(t.Context(), decidedOn(0.5)); err != nil {
		t.Fatal(err)
	}
	stopStore(t, e)
	if err := e.SaveCalculation(t.Context(), decidedOn(0.25)); err == nil {
		t.Error("stopped store accepted a calculation")
	}
	if c, err := newSetup(fsys).open(t).LatestCalculation(t.Context()); err != nil || c == nil || c.Decisions[0].Probability != 0.5 {
		t.Errorf("%+v, %v", c, err)
	}
}

func decidedOn(p float64) *sampling.Calculation {
	key := sampling.OperationKey{Service: "s", Operation: "o"}
	return &sampling.Calculation{By: "me", Decisions: []sampling.Decision{{OperationKey: key, Probability: p}}}
}

// After a power cut at any disk operation, the latest calculation is the last acknowledged one or
// the one that was being saved.
func TestSamplingCrashes(t *testing.T) {
	for seed := range uint64(soak.Rounds(t, 100, 30)) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		mem := vfstest.NewMem()
		s := openSampling(t, mem, time.Now)
		out := newOutage(mem, rnd)
		s.fs = vfstest.Inject(mem, &vfstest.Rule{Op: vfstest.OpChanges, Skip: rnd.IntN(40), Times: 1, Hook: out.strike})
		acknowledged := 0.
		for i := 1; out.left == nil; i++ {
			p := float64(i) / 1000
			if err := s.SaveCalculation(context.Background(), decidedOn(p)); err == nil && out.left == nil {
				acknowledged = p
			}
		}
		after := newSamplingStore(folder, time.Now)
		damage, err := after.load(out.left)
		if damage != nil || err != nil {
			t.Fatalf("seed %d: %v, %v", seed, damage, err)
		}
		found := 0.
		if c, _ := after.LatestCalculation(context.Background()); c != nil {
			found = c.Decisions[0].Probability
		}
		if found < acknowledged || found > acknowledged+0.0015 {
			t.Fatalf("seed %d: found %v, but %v was acknowledged", seed, found, acknowledged)
		}
	}
}

// A damaged file is moved to the quarantine and logged, and the store starts.
func TestDamagedSampling(t *testing.T) {
	good, err := encodeSampling(sampling.State{Latest: decidedOn(0.5)})
	if err != nil {
		t.Fatal(err)
	}
	flipped := append([]byte(nil), good...)
	flipped[len(flipped)-3] ^= 1
	impossible, _ := encodeSampling(sampling.State{Latest: decidedOn(5)})
	for name, text := range map[string][]byte{"empty": {}, "cut": good[:len(good)-1], "flipped": flipped, "impossible": impossible,
		"newer": []byte(strings.Replace(string(good), "version 1", "version 2", 1))} {
		t.Run(name, func(t *testing.T) {
			fsys := vfstest.NewMem()
			if err := fsys.MkdirAll(folder); err != nil {
				t.Fatal(err)
			}
			if err := vfs.WriteFileAtomic(fsys, path.Join(folder, samplingFile), text); err != nil {
				t.Fatal(err)
			}
			core, logs := observer.New(zap.ErrorLevel)
			set := newSetup(fsys)
			set.log = zap.New(core)
			e := set.open(t)
			if c, err := e.LatestCalculation(t.Context()); c != nil || err != nil {
				t.Errorf("%+v, %v", c, err)
			}
			quarantined, err := e.dir.Quarantined()
			if err != nil || len(quarantined) != 1 || logs.FilterMessageSnippet("adaptive sampling").Len() != 1 {
				t.Errorf("quarantine has %v, %v; log messages %v", quarantined, err, logs.All())
			}
			if err := e.SaveCalculation(t.Context(), decidedOn(0.5)); err != nil {
				t.Error(err)
			}
		})
	}
}

// If the disk fails, saving returns an error and the previous calculation stays.
func TestSamplingOnAFailingDisk(t *testing.T) {
	mem := vfstest.NewMem()
	s := openSampling(t, mem, time.Now)
	if err := s.SaveCalculation(t.Context(), decidedOn(0.5)); err != nil {
		t.Fatal(err)
	}
	s.fs = vfstest.Inject(mem, &vfstest.Rule{Op: vfstest.OpSync, Err: syscall.EIO})
	if err := s.SaveCalculation(t.Context(), decidedOn(0.25)); err == nil {
		t.Error("calculation was acknowledged but not written")
	}
	if c, _ := openSampling(t, mem, time.Now).LatestCalculation(t.Context()); c == nil || c.Decisions[0].Probability != 0.5 {
		t.Errorf("%+v", c)
	}
}

// If throughputs do not fit into the file, the newest are kept.
func TestSamplingOfManyLongNames(t *testing.T) {
	state := sampling.State{Latest: decidedOn(0.5)}
	for i := range 20 {
		row := sampling.ThroughputRow{OperationKey: sampling.OperationKey{Service: "s", Operation: strings.Repeat("o", sampling.MaxName)}}
		seen := sampling.Throughput{Until: time.Unix(int64(i), 0), Length: time.Second, Rows: []sampling.ThroughputRow{row}}
		state.Throughputs = append(state.Throughputs, seen)
	}
	text, err := samplingText(state, 8<<10)
	if err != nil {
		t.Fatal(err)
	}
	var kept sampling.State
	if err := json.Unmarshal(text, &kept); err != nil {
		t.Fatal(err)
	}
	if n := len(kept.Throughputs); n != 5 || !kept.Throughputs[n-1].Until.Equal(time.Unix(19, 0)) || kept.Latest == nil {
		t.Errorf("kept %d throughputs, want the newest 5: %+v", n, kept.Throughputs)
	}
	if _, err := samplingText(state, 10); !errors.Is(err, errSamplingTooBig) {
		t.Errorf("calculation that does not fit: %v, want errSamplingTooBig", err)
	}
}

func FuzzSamplingState(f *testing.F) {
	good, _ := encodeSampling(sampling.State{Latest: decidedOn(0.5)})
	f.Add(good)
	f.Add([]byte("tracing sampling state, version 1, crc32c 00000000\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		state, err := decodeSampling(b)
		if err != nil || sampling.NewMemory(time.Now).Restore(state) != nil {
			return
		}
		again, err := encodeSampling(state)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := decodeSampling(again); err != nil {
			t.Errorf("decoded %q and encoded it as %q, which cannot be decoded: %v", b, again, err)
		}
	})
}
