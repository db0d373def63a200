package examples_test

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracing-backend/tracing/test/harness"
)

// manyOrders is more than a program takes until its sampler has followed two strategies: with the
// pauses between them, two minutes.
const manyOrders = 6000

// The samplers of SDKs follow the strategies of the program: nothing of a service that a file
// excludes is sampled, and after a change of the file everything is.
func TestSampling(t *testing.T) {
	harness.SkipIfShort(t)
	for language, program := range programs() {
		t.Run(language, func(t *testing.T) {
			if program.sampling == nil {
				t.Skip("the official SDK for this language has no remote sampler")
			}
			cmd := program.command(t, manyOrders, 20)
			file := filepath.Join(t.TempDir(), "strategies.json")
			setProbability(t, file, program.service, "0")
			p := harness.RunAllInOne(t, t.TempDir(), "extensions::sampling::file::path="+file,
				"extensions::sampling::file::reload_interval=20ms", "extensions::sampling::file::default_sampling_probability=1")
			cmd.Env = append(os.Environ(), "OTEL_EXPORTER_OTLP_ENDPOINT=http://"+p.OTLPHTTP(), "OTEL_TRACES_SAMPLER=jaeger_remote",
				"OTEL_TRACES_SAMPLER_ARG=endpoint="+program.sampling(p)+",pollingIntervalMs=100,initialSamplingRate=1")
			follow(t, cmd, func() { setProbability(t, file, program.service, "1") })
		})
	}
}

// setProbability writes a file of strategies that has one for a service.
func setProbability(t *testing.T, file, service, probability string) {
	t.Helper()
	text := `{"service_strategies": [{"service": "` + service + `", "type": "probabilistic", "param": ` + probability + `}]}`
	if err := os.WriteFile(file+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		t.Fatal(err)
	}
}

// follow reads the output of a program until it does not sample, calls change, and reads until it
// samples again.
func follow(t *testing.T, cmd *exec.Cmd, change func()) {
	t.Helper()
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	await := func(ending string) bool {
		for lines.Scan() {
			if strings.HasSuffix(lines.Text(), ending) {
				return true
			}
		}
		return false
	}
	if !await("sampled false") {
		t.Error("program samples although its strategy has the probability 0")
	}
	change()
	if !await("sampled true") {
		t.Error("program does not sample although its strategy has the probability 1")
	}
	if err := cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Error(err)
	}
	for lines.Scan() { // until the pipe is closed
	}
	if err := cmd.Wait(); err == nil {
		t.Error("program has ended by itself")
	}
}
