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

	"github.com/tracing-backend/tracing/test/harness"
)

// plantedBug is a mistake that could be made one day, and that the simulation must find: in a program that has it, something else stands instead
// of a piece that file has once. Both are whole statements, and the piece declares nothing that is used after it: it becomes a branch of an if.
type plantedBug struct {
	name           string
	promise        string // that it breaks
	file           string
	piece, instead string
}

var plantedBugs = []plantedBug{
	{name: "ack before sync", promise: "what is acknowledged survives a power cut", file: "pipeline/storage/wal/flush.go",
		piece: `if err == nil && (sync || len(d.unsynced) > l.opts.MaxPending) {
		err = d.sync()
	}`,
		instead: `if err == nil && d.fresh > 0 { // a group is synced with the next one, after its ack
		err = d.sync()
	}`},
	{name: "cursor before answer", promise: "what waits in a queue is there until the destination has it", file: "pipeline/storage/spool/take.go",
		piece: `return p.take(), nil, nil, nil`,
		instead: `item = p.take()
	_, err = q.note(doneItem{item.epoch, item.seq})
	return item, nil, nil, err`},
	{name: "record reuse after a restart", promise: "what is sent is what was received", file: "pipeline/storage/spool/take.go",
		piece: `items = append(items, item)`,
		instead: `item.Payload = r.payload
		items = append(items, item)`},
	{name: "record reuse in memory", promise: "what is sent is what was received", file: "pipeline/queue_disk.go",
		piece: `err = q.spool.Load().Put(b, l.spans, parts...)`,
		instead: `err = q.spool.Load().Put(b, l.spans, parts...)
	for _, p := range parts {
		clear(p)
	}`},
	{name: "double drop", promise: "of every span that came in it is counted once what became of it", file: "pipeline/queue_disk.go",
		piece: `q.evict(i)
		q.done(i)`,
		instead: `q.evict(i)
		q.evict(i)
		q.done(i)`},
	{name: "swap without drain", promise: "what waits in memory for an exporter that goes is sent", file: "pipeline/transition.go",
		piece: `t.app.retiring.begin(t.app, n)`,
		instead: `now, end := context.WithCancel(ctx)
		end()
		_ = stopSafely(now, n)`},
	{name: "swap without waiting", promise: "a reload refuses nobody", file: "pipeline/transition.go",
		piece:   `n.out.drain(func() { t.hurry(n) })`,
		instead: `_ = n.out // it leads to what goes until what comes has started`},
	{name: "swap that counts again", promise: "of every span that came in it is counted once what became of it", file: "pipeline/edge_queue.go",
		piece:   `e.count.in.Add(float64(max(e.queue.state().spans-known, 0)))`,
		instead: `e.count.in.Add(float64(e.queue.state().spans))`},
}

// plantedSeeds is how many scenarios may pass before a planted bug must have been found.
const plantedSeeds = 1000

// plantedName is the variable of the environment with the name of the bug that the program has. Where there is none, it has no bug.
const plantedName = "SIMULATION_PLANTED"

// TestPlantedBugs builds the simulation with all bugs in it, each behind a condition, and demands that each is found, and that the scenario which
// has found it passes without it. The sources stay as they are.
func TestPlantedBugs(t *testing.T) {
	harness.SkipIfShort(t)
	program, err := buildPlanted(harness.Root(t), t.TempDir(), plantedBugs)
	if err != nil {
		t.Fatalf("the table of planted bugs has to follow the sources: %v", err)
	}
	for _, b := range plantedBugs {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			b.mustBeFound(t, program)
		})
	}
}

// foundBug is what TestSimulation writes when a scenario fails: first a complaint, at last its seed.
var foundBug = regexp.MustCompile(`(?s)\w+_test\.go:\d+: ([^\n]*)\n.*replay: go test -run TestSimulation -seed (\d+) `)

func (b *plantedBug) mustBeFound(t *testing.T, program string) {
	out, err := simulateIn(t, program, b.name, "1", plantedSeeds)
	if err == nil {
		t.Fatalf("not found in %d scenarios, although it breaks a promise: %s", plantedSeeds, b.promise)
	}
	found := foundBug.FindStringSubmatch(out)
	if found == nil {
		t.Fatalf("the simulation names no scenario and what is wrong with it: %v\n%s", err, out)
	}
	complaint, seed := found[1], found[2]
	t.Logf("found by seed %s: %s", seed, complaint)
	if out, err := simulateIn(t, program, "", seed, 1); err != nil {
		t.Errorf("seed %s fails without the bug, too: %v\n%s", seed, err, out)
	}
}

// simulateIn runs the simulation in a program that has one of the bugs, or with "" none, and returns what it writes.
func simulateIn(t *testing.T, program, bug, firstSeed string, seeds int) (string, error) {
	cmd := exec.CommandContext(t.Context(), program, "-test.run", "^TestSimulation$")
	cmd.Env = append(os.Environ(), plantedName+"="+bug, simulationStart+"="+firstSeed, fmt.Sprint("SIMULATION_SEEDS=", seeds))
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// buildPlanted builds the test program of this package from sources with bugs, which it writes to dir.
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
	build := exec.Command("go", "test", "-c", "-overlay", file, "-ldflags", "-s -w", "-o", program, "./test/simulation")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building with the bugs: %w\n%s", err, out)
	}
	return program, nil
}

// plantedSources returns the files that differ: those with bugs, and a new one in each of their packages that knows which bug the program has.
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
			return nil, fmt.Errorf("%s: %s has this piece %d times, not once:\n%s", b.name, b.file, n, b.piece)
		}
		branches := fmt.Sprintf("if planted == %q {\n%s\n} else {\n%s\n}", b.name, b.instead, b.piece)
		sources[b.file] = strings.Replace(text, b.piece, branches, 1)
		folder := path.Dir(b.file)
		sources[folder+"/planted.go"] = fmt.Sprintf("package %s\nimport \"os\"\nvar planted = os.Getenv(%q)\n", path.Base(folder), plantedName)
	}
	return sources, nil
}
