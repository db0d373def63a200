package sampling_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/tracing-backend/tracing/test/harness"
)

// The native library of Node.js does what a file says, through a collector and through an agent, and changes when it changes.
func TestNodeSamplersFollowTheFile(t *testing.T) {
	if testing.Short() {
		t.Skip("it installs the libraries")
	}
	dir := harness.InstallNode(t)
	if dir == "" {
		t.Skip("there is no node on this machine")
	}
	script, err := os.ReadFile(filepath.Join(harness.Root(t), "test", "e2e", "testdata", "node", "sampler.js"))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "sampler.js"), script, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	followTheFile(t, func(atCollector, atAgent string) []samplingClient {
		return []samplingClient{
			nodeSamplingClient(t, dir, "jaeger-client at the collector", atCollector),
			nodeSamplingClient(t, dir, "jaeger-client at the agent", atAgent),
		}
	})
}

// nodeSamplingClient is the native library in a process of Node.js, with the script in dir.
func nodeSamplingClient(t *testing.T, dir, name, at string) samplingClient {
	u, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("node", "sampler.js", u.Hostname(), u.Port(), u.Path)
	var stderr bytes.Buffer
	cmd.Dir, cmd.Stderr = dir, &stderr
	stdin, err := cmd.StdinPipe()
	var stdout io.ReadCloser
	if err == nil {
		stdout, err = cmd.StdoutPipe()
	}
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stdin.Close() //nolint:errcheck // the process may have ended
		if err := cmd.Wait(); err != nil || stderr.Len() > 0 {
			t.Errorf("%s: %v: %s", name, err, stderr.String())
		}
	})
	ask, answers := json.NewEncoder(stdin), json.NewDecoder(stdout)
	return samplingClient{name, func(operation string, traces int) (sampled int, sampler string) {
		err := ask.Encode(map[string]any{"operation": operation, "traces": traces})
		var answer struct {
			Sampled int
			By      string
		}
		if err == nil {
			err = answers.Decode(&answer)
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return answer.Sampled, answer.By
	}}
}
