// Package examples_test runs the programs in examples/apps, which use the official SDKs.
package examples_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/tracing-backend/tracing/test/harness"
)

// program is an example in one language.
type program struct {
	service string
	// command returns the command that takes orders with a pause between them, in milliseconds. It
	// skips the test if tools or packages are missing.
	command func(t *testing.T, orders, pause int) *exec.Cmd
	// sampling returns the endpoint in OTEL_TRACES_SAMPLER_ARG; nil if the SDK has no remote
	// sampler.
	sampling func(p *harness.Process) string
}

// programs returns all examples.
func programs() map[string]program {
	overHTTP := func(p *harness.Process) string { return "http://" + p.Address("sampling", "http") }
	return map[string]program{
		"go":     {"shop-go", goProgram, func(p *harness.Process) string { return overHTTP(p) + "/sampling" }},
		"node":   {"shop-node", nodeProgram, overHTTP},
		"python": {"shop-python", pythonProgram, nil},
		"java": {"shop-java", javaProgram, func(p *harness.Process) string {
			return "http://" + p.Address("native", "protocols.grpc")
		}},
	}
}

// folder returns the folder of an example. Without a file that the installation of its packages
// makes, it skips the test; `make test-long` installs none, on developers' machines and in CI.
func folder(t *testing.T, language, installed string) string {
	t.Helper()
	dir := filepath.Join(harness.Root(t), "examples", "apps", language)
	_, err := os.ReadDir(dir) // so that Go repeats the test if a file has changed
	if err != nil {
		t.Fatal(err)
	}
	if found, err := filepath.Glob(filepath.Join(dir, installed)); err != nil || len(found) == 0 {
		t.Skipf("packages of the example are not installed (no %s); run `make test-examples`", filepath.Join(dir, installed))
	}
	return dir
}

// tool skips the test if a program of the language is missing.
func tool(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("no %s: %v", name, err)
	}
	return path
}

func goProgram(t *testing.T, orders, pause int) *exec.Cmd {
	t.Helper()
	path := filepath.Join(t.TempDir(), "shop")
	build := exec.Command("go", "build", "-buildvcs=false", "-o", path, "./examples/apps/go")
	build.Dir = harness.Root(t)
	harness.DependsOn(t, filepath.Join(build.Dir, "examples", "apps", "go"))
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return exec.Command(path, "-orders", strconv.Itoa(orders), "-pause", strconv.Itoa(pause)+"ms")
}

func nodeProgram(t *testing.T, orders, pause int) *exec.Cmd {
	t.Helper()
	node := tool(t, "node")
	dir := folder(t, "node", "node_modules/.package-lock.json")
	return exec.Command(node, filepath.Join(dir, "shop.js"), strconv.Itoa(orders), strconv.Itoa(pause))
}

func pythonProgram(t *testing.T, orders, pause int) *exec.Cmd {
	t.Helper()
	dir := folder(t, "python", ".venv/lib/python3*/site-packages/opentelemetry/sdk")
	return exec.Command(filepath.Join(dir, ".venv", "bin", "python"), filepath.Join(dir, "shop.py"), strconv.Itoa(orders), strconv.Itoa(pause))
}

func javaProgram(t *testing.T, orders, pause int) *exec.Cmd {
	t.Helper()
	java := tool(t, "java")
	dir := folder(t, "java", "target/classes/Shop.class")
	classes := filepath.Join(dir, "target", "classes") + string(os.PathListSeparator) + filepath.Join(dir, "target", "dependency", "*")
	return exec.Command(java, "-XX:TieredStopAtLevel=1", "-cp", classes, "Shop", strconv.Itoa(orders), strconv.Itoa(pause))
}
