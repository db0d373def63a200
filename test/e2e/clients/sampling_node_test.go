package clients_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/url"
	"os/exec"
	"testing"

	"github.com/tracing-backend/tracing/test/harness"
)

// TestNodeSamplersFollowTheFile is like [TestSamplersFollowTheFile] for the Jaeger client for
// Node.js.
func TestNodeSamplersFollowTheFile(t *testing.T) {
	harness.SkipIfShort(t)
	dir := harness.NodeDir(t)
	followTheFile(t, func(atCollector, atAgent string) []samplingClient {
		return []samplingClient{
			nodeSamplingClient(t, dir, "jaeger-client at the collector", atCollector),
			nodeSamplingClient(t, dir, "jaeger-client at the agent", atAgent),
		}
	})
}

// nodeSamplingClient returns the Jaeger client for Node.js, which runs in a process of its own with
// the script in dir.
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
