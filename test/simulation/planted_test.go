package simulation_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tracing-backend/tracing/pipeline/soak"
	"github.com/tracing-backend/tracing/test/harness"
)

// plantedBug is a bug that the simulation must find. In a program with the bug, instead replaces
// piece, which occurs once in file. Both are complete statements, because the piece becomes a
// branch of an if statement. It declares nothing that is used later.
type plantedBug struct {
	name           string
	promise        string // the guarantee that it breaks
	file           string
	piece, instead string
	first          uint64 // seed to start with, before one that finds the bug; 0 means 1
}

var plantedBugs = []plantedBug{
	{name: "part given up", promise: "parts of a batch that fail are resent", file: "exporters/load_balancing/load_balancing.go",
		piece: `failed = append(failed, parts[i].batch)`,
		instead: `if i == 0 {
				failed = append(failed, parts[i].batch)
			}`, first: 49},
	{name: "ack before sync", promise: "acknowledged spans survive a power cut", file: "pipeline/storage/wal/flush.go",
		piece: `if err == nil && (sync || len(d.unsynced) > l.opts.MaxPending) {
		err = d.sync()
	}`,
		instead: `if err == nil && d.fresh > 0 { // a group is synced with the next one, after its acknowledgement
		err = d.sync()
	}`},
	{name: "cursor before answer", promise: "a span stays in the queue until the destination has it", file: "pipeline/storage/spool/take.go",
		piece: `return p.takeItem(), nil, nil, nil`,
		instead: `item = p.takeItem()
	_, err = q.note(doneItem{item.epoch, item.seq})
	return item, nil, nil, err`},
	{name: "record reuse after a restart", promise: "spans are sent as they were received", file: "pipeline/storage/spool/take.go",
		piece: `items = append(items, item)`,
		instead: `item.Payload = r.payload
		items = append(items, item)`},
	{name: "record reuse in memory", promise: "spans are sent as they were received", file: "pipeline/internal/delivery/queue_disk.go",
		piece: `err = q.spool.Load().Put(b, l.spans, parts...)`,
		instead: `err = q.spool.Load().Put(b, l.spans, parts...)
	for _, p := range parts {
		clear(p)
	}`},
	{name: "double drop", promise: "every span is counted once by outcome", file: "pipeline/internal/delivery/queue_disk.go",
		piece: `q.evicted(i)
		q.done(i)`,
		instead: `q.evicted(i)
		q.evicted(i)
		q.done(i)`, first: 120},
	{name: "swap without drain", promise: "spans queued in memory for a removed exporter are sent",
		file:  "pipeline/internal/host/transition.go",
		piece: `t.app.retiring.emptyQueue(n)`,
		instead: `now, end := context.WithCancel(ctx)
		end()
		_ = stopSafely(now, n)`},
	{name: "swap without waiting", promise: "a reload refuses no spans", file: "pipeline/internal/host/transition.go",
		piece:   `n.gate.Drain(func() { t.interruptRetries(n) })`,
		instead: `_ = n.gate // it leads to the stopped component until the new one has started`, first: 30},
	{name: "swap that counts again", promise: "every span is counted once by outcome", file: "pipeline/internal/delivery/exporter_queue.go",
		piece:   `e.count.in.Add(float64(max(e.queue.state().spans-known, 0)))`,
		instead: `e.count.in.Add(float64(e.queue.state().spans))`},
}

// plantedRounds times simulationRuns is the number of scenarios after which a planted bug must have
// been found.
const plantedRounds = 5

// plantedName is the environment variable with the name of the bug that is active. Without it no
// bug is active.
const plantedName = "SIMULATION_PLANTED"

// TestPlantedBugs builds the simulation with all bugs, each behind a condition, and checks that the
// simulation finds each bug, and that the scenario that finds it passes without the bug. The build
// uses an overlay; the source files do not change.
func TestPlantedBugs(t *testing.T) {
	harness.SkipIfShort(t)
	program, err := buildPlanted(harness.Root(t), t.TempDir(), plantedBugs)
	if err != nil {
		t.Fatalf("the table of planted bugs must match the source files: %v", err)
	}
	for _, b := range plantedBugs {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			b.mustBeFound(t, program)
		})
	}
}

// foundBug matches the output of a failed scenario: the first error, and its seed at the end.
var foundBug = regexp.MustCompile(`(?s)\w+_test\.go:\d+: +([^\n]+)\n.*replay: go test -run TestSimulation -seed (\d+) `)

func (b *plantedBug) mustBeFound(t *testing.T, program string) {
	out, err := simulateIn(t, program, b, "")
	if err == nil {
		t.Fatalf("not found in %d scenarios; broken guarantee: %s", plantedRounds*simulationRuns, b.promise)
	}
	out = strings.ReplaceAll(out, b.start(), "") // not an error
	found := foundBug.FindStringSubmatch(out)
	if found == nil {
		t.Fatalf("no error and seed in the output of the simulation: %v\n%s", err, out)
	}
	message, seed := found[1], found[2]
	t.Logf("found by seed %s: %s", seed, message)
	if out, err := simulateIn(t, program, &plantedBug{}, seed); err != nil {
		t.Errorf("seed %s also fails without the bug: %v\n%s", seed, err, out)
	}
}

// start returns the setting of the environment for the first seed.
func (b *plantedBug) start() string { return fmt.Sprint(soak.SeedVariable, "=", max(b.first, 1)) }

// simulateIn runs the simulation in a program with one of the bugs, or with none if its name is "".
// It runs the scenario of one seed, or all scenarios if seed is "". It returns the output.
func simulateIn(t *testing.T, program string, bug *plantedBug, seed string) (string, error) {
	cmd := exec.CommandContext(t.Context(), program, "-test.run", "^TestSimulation$")
	if seed != "" {
		cmd.Args = append(cmd.Args, "-seed", seed)
	}
	cmd.Env = append(os.Environ(), plantedName+"="+bug.name, bug.start(), fmt.Sprint(soak.RoundsVariable, "=", plantedRounds))
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// buildPlanted builds the test program of this package from source files with bugs, which it writes
// to dir.
func buildPlanted(root, dir string, bugs []plantedBug) (program string, err error) {
	sources, err := plantedSources(root, bugs)
	if err != nil {
		return "", err
	}
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	for file, text := range sources {
		planted := filepath.Join(dir, strings.ReplaceAll(file, "/", "_"))
		overlay.Replace[filepath.Join(root, file)] = planted
		if err := os.WriteFile(planted, []byte(text), 0o600); err != nil {
			return "", err
		}
	}
	list, err := json.Marshal(overlay)
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(file, list, 0o600); err != nil {
		return "", err
	}
	program = filepath.Join(dir, "planted.test")
	build := exec.Command("go", "test", "-c", "-vet=off", "-overlay", file, "-ldflags", "-s -w", "-o", program, "./test/simulation")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building with planted bugs: %w\n%s", err, out)
	}
	return program, nil
}

var packageClause = regexp.MustCompile(`(?m)^package \w+$`)

// plantedSources returns the changed files by name: those with bugs, and a new one in each of their
// packages that reads the name of the active bug.
func plantedSources(root string, bugs []plantedBug) (map[string]string, error) {
	sources := map[string]string{}
	for _, b := range bugs {
		text, changed := sources[b.file]
		if !changed {
			original, err := os.ReadFile(filepath.Join(root, b.file))
			if err != nil {
				return nil, fmt.Errorf("%s: %w", b.name, err)
			}
			text = string(original)
		}
		if n := strings.Count(text, b.piece); n != 1 {
			return nil, fmt.Errorf("%s: %s contains this piece %d times, want once:\n%s", b.name, b.file, n, b.piece)
		}
		branches := fmt.Sprintf("if planted == %q {\n%s\n} else {\n%s\n}", b.name, b.instead, b.piece)
		sources[b.file] = strings.Replace(text, b.piece, branches, 1)
		clause := packageClause.FindString(text)
		sources[path.Dir(b.file)+"/planted.go"] = fmt.Sprintf("%s\nimport \"os\"\nvar planted = os.Getenv(%q)\n", clause, plantedName)
	}
	return sources, nil
}
