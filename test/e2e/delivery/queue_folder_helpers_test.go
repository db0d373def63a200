package delivery_test

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tracing-backend/tracing/test/harness"
)

// The requests of these tests are large, so that a few hundred fill several files of the queue.
const (
	spansOfRequest = 3
	textOfRequest  = 128 << 10 // bytes
	requestsLeft   = 280       // in the queue of the killed agent: two full files of 16 MiB, and 3 MiB of the next one
)

const folderAgent = `
receivers: {otlp: {protocols: {grpc: {endpoint: "localhost:0"}}}}
exporters:
  native:
    endpoint: %q
    tls: {insecure: true}
    retry_on_failure: {initial_interval: 20ms, max_interval: 50ms, max_elapsed_time: 0s}
    sending_queue: {storage: disk, queue_size: 0, num_consumers: 4}
extensions: {admin: {endpoint: "localhost:0"}}
service:
  data_dir: %q
  extensions: [admin]
  pipelines: {traces: {receivers: [otlp], exporters: [native]}}
`

func startFolderAgent(t *testing.T, nextHop, dataDir string) *harness.Process {
	t.Helper()
	p := harness.RunYAML(t, fmt.Sprintf(folderAgent, nextHop, dataDir))
	p.AwaitReady()
	return p
}

// queueFolder is the folder of a sending queue in the data directory of an agent.
type queueFolder struct {
	t       *testing.T
	dataDir string
}

func (f *queueFolder) path(name string) string {
	return filepath.Join(f.dataDir, "native", "queue", name)
}

// logs returns the paths of the log files, oldest first.
func (f *queueFolder) logs() []string {
	f.t.Helper()
	names, err := filepath.Glob(f.path("log/*-*.log"))
	if err != nil {
		f.t.Fatal(err)
	}
	return slices.DeleteFunc(names, func(n string) bool { return strings.HasPrefix(filepath.Base(n), "spare-") })
}

// damaged returns the damaged files of an empty queue. They are in the folder "damaged", or, if
// that cannot be created, beside the current log.
func (f *queueFolder) damaged(noFolder bool) []string {
	f.t.Helper()
	if noFolder {
		return f.logs()[:len(f.logs())-1]
	}
	names, err := filepath.Glob(f.path("damaged/*-*.log"))
	f.must(err)
	return names
}

// requests returns the numbers of the requests whose last bytes are in the given files.
func (f *queueFolder) requests(logs ...string) map[int]bool {
	f.t.Helper()
	numbers := map[int]bool{}
	for _, name := range logs {
		content, err := os.ReadFile(name)
		f.must(err)
		for _, found := range markers.FindAllSubmatch(content, -1) {
			number, err := strconv.Atoi(string(found[1]))
			f.must(err)
			numbers[number] = true
		}
	}
	return numbers
}

func (f *queueFolder) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

func (f *queueFolder) remove(name string) { f.t.Helper(); f.must(os.RemoveAll(name)) }

func (f *queueFolder) write(name string, content []byte) {
	f.t.Helper()
	f.must(os.WriteFile(f.path(name), content, 0o600))
}

// flip flips one bit at each of n random positions of a file.
func (f *queueFolder) flip(rnd *rand.Rand, name string, n int) {
	f.t.Helper()
	content, err := os.ReadFile(name)
	f.must(err)
	for range n {
		content[rnd.IntN(len(content))] ^= 1 << rnd.IntN(8)
	}
	f.must(os.WriteFile(name, content, 0o600))
}

// used returns the length of a file without the zeros at its end.
func (f *queueFolder) used(name string) int64 {
	f.t.Helper()
	content, err := os.ReadFile(name)
	f.must(err)
	return int64(len(bytes.TrimRight(content, "\x00")))
}

func (f *queueFolder) overwrite(name string, at int64, with []byte) {
	f.t.Helper()
	file, err := os.OpenFile(name, os.O_WRONLY, 0)
	f.must(err)
	defer file.Close()
	_, err = file.WriteAt(with, at)
	f.must(err)
}

// copyFor copies the folder of an agent that is not running.
func (f *queueFolder) copyFor(t *testing.T) *queueFolder {
	t.Helper()
	c := &queueFolder{t, t.TempDir()}
	c.must(os.CopyFS(c.dataDir, os.DirFS(f.dataDir)))
	return c
}

// leaveQueue runs an agent without a next hop, fills its queue, and kills it.
func leaveQueue(t *testing.T) *queueFolder {
	t.Helper()
	f := &queueFolder{t, t.TempDir()}
	agent := startFolderAgent(t, "localhost:1", f.dataDir)
	acked, _ := sendNumbered(t, agent, 0, 0, requestsLeft)
	agent.Kill()
	if len(acked) != requestsLeft || len(f.logs()) < 3 || !maps.Equal(f.requests(f.logs()...), acked) {
		t.Fatalf("%d requests were acknowledged, %d are in %q", len(acked), len(f.requests(f.logs()...)), f.logs())
	}
	return f
}

// lostBatches returns the maximum number of batches that a process has logged as lost by the disk.
func lostBatches(p *harness.Process) (batches int) {
	for _, line := range p.LogLines() {
		if text, _ := line["msg"].(string); strings.HasPrefix(text, "sending queue file is ") {
			batches += int(line["up_to_batches"].(float64))
		}
	}
	return batches
}

// exporterAccount stops an agent and returns the final account of its exporter.
func exporterAccount(t *testing.T, agent *harness.Process) map[string]any {
	t.Helper()
	agent.Terminate()
	accounts := agent.ExporterAccounts()
	if len(accounts) != 1 {
		t.Fatalf("accounts of exporters: %v", accounts)
	}
	return accounts[0]
}

// count returns the spans of an outcome, which is missing if there are none.
func count(account map[string]any, outcome string) int {
	n, _ := account[outcome].(float64)
	return int(n)
}

// missing returns the numbers that are in want and not in have.
func missing(want, have map[int]bool) (numbers []int) {
	for n := range want {
		if !have[n] {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	return numbers
}
