package tracing_test

import (
	"bytes"
	"encoding/json"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/tracing-backend/tracing/pipeline"
)

// The native library of Node.js does, at an agent, what the collector's file says, and its root spans say so.
func TestNodeSampler(t *testing.T) {
	if testing.Short() {
		t.Skip("it installs the libraries")
	}
	dir := installNode(t)
	if dir == "" {
		t.Skip("there is no node on this machine")
	}
	script, err := filepath.Abs(filepath.Join("testdata", "clients", "sampler.js"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(script)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "sampler.js"), text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]struct {
		typ         string
		param       float64
		least, most int
	}{
		"probabilistic": {"probabilistic", 0.25, 5000 - 306, 5000 + 306}, // five standard deviations of 20,000 traces
		"ratelimiting":  {"ratelimiting", 7, 0, 7 * 3},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "strategies.json")
			strategy, _ := json.Marshal(map[string]any{"default_strategy": map[string]any{"type": want.typ, "param": want.param}})
			if err := os.WriteFile(file, strategy, 0o600); err != nil {
				t.Fatal(err)
			}
			collector := start(t, "extensions::sampling::file::path="+file)
			agent := startAgentOf(t, collector.app.Addr(pipeline.ID{Type: "native"}, "grpc"))
			host, port, err := net.SplitHostPort(agent.app.Addr(pipeline.ID{Type: "sampling"}, "http"))
			if err != nil {
				t.Fatal(err)
			}
			var stderr bytes.Buffer
			cmd := exec.Command("node", "sampler.js", host, port, "20000", want.typ)
			cmd.Dir, cmd.Stderr = dir, &stderr
			out, err := cmd.Output()
			var got struct {
				Sampled int
				Type    string
				Param   float64
			}
			if err != nil || json.Unmarshal(out, &got) != nil {
				t.Fatalf("%v: %s%s", err, out, stderr.String())
			}
			if got.Type != want.typ || math.Abs(got.Param-want.param) > 1e-9 || got.Sampled < want.least || got.Sampled > want.most {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}
