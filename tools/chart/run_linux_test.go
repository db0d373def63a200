package chart_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/tracing-backend/tracing/test/harness"
)

// insideVariable is set for the process of TestRun that runs in its own network.
const insideVariable = "TRACING_CHART_TEST_INSIDE"

// startTimeout ends a test whose processes do not become ready.
const startTimeout = time.Minute

// The containers of a release run as processes with their command lines, environments, files and
// ports, in a network of their own in which the names of services lead to them. Their probes
// succeed, and the pod of helm test does.
func TestRun(t *testing.T) {
	for _, name := range []string{"defaults", "split"} {
		t.Run(name, func(t *testing.T) {
			if os.Getenv(insideVariable) == "" {
				runInOwnNetwork(t)
				return
			}
			useLoopback(t)
			runRelease(t, render(t, valueFiles(t)[name]))
		})
	}
}

// runInOwnNetwork runs the test in a process that is in new namespaces, where it may use all ports
// and its own file of host names.
func runInOwnNetwork(t *testing.T) {
	t.Helper()
	program := harness.Binary(t) // built outside, where Go finds its cache
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), insideVariable+"=1", harness.ProgramVariable+"="+program)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	if _, exited := err.(*exec.ExitError); err != nil && !exited {
		skip := t.Skipf
		if os.Getenv("CI") == "true" {
			skip = t.Fatalf
		}
		skip("skipped: this machine allows no process with its own network: %v", err)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}

// useLoopback enables the loopback interface of the new network.
func useLoopback(t *testing.T) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd) //nolint:errcheck // nothing was written
	request, err := unix.NewIfreq("lo")
	if err != nil {
		t.Fatal(err)
	}
	request.SetUint16(unix.IFF_UP)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, request); err != nil {
		t.Fatal(err)
	}
}

func runRelease(t *testing.T, r release) {
	t.Helper()
	nameServices(t, r)
	var running []*runningContainer
	for _, w := range workloads(r) {
		running = append(running, start(t, asProcess(t, r, w)))
	}
	for _, c := range running {
		t.Logf("%s: ready after %v", c.name, c.waitReady(t).Round(time.Millisecond))
	}
	runCanary(t, find[*corev1.Pod](t, r, fullName+"-canary").Spec.Containers[0])
	if _, ok := lookup[*appsv1.DaemonSet](r, fullName+"-agent"); ok {
		checkStrategies(t)
	}
	for _, c := range running {
		c.stop(t)
	}
}

// nameServices makes the names of the services and of the pods of stateful sets known.
func nameServices(t *testing.T, r release) {
	t.Helper()
	hosts := "127.0.0.1 localhost\n"
	for _, s := range all[*corev1.Service](r) {
		hosts += "127.0.0.1 " + s.Name + "\n"
		if pods, ok := strings.CutSuffix(s.Name, "-headless"); ok {
			hosts += "127.0.0.1 " + pods + "-0." + s.Name + "\n"
		}
	}
	file := filepath.Join(t.TempDir(), "hosts")
	writeFile(t, file, hosts)
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount(file, "/etc/hosts", "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
}

type runningContainer struct {
	container
	cmd   *exec.Cmd
	log   *bytes.Buffer
	since time.Time
}

func start(t *testing.T, c container) *runningContainer {
	t.Helper()
	r := &runningContainer{container: c, cmd: c.command(t.Context(), t), log: new(bytes.Buffer), since: time.Now()}
	r.cmd.Stderr = r.log
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return r
}

// waitReady waits until the readiness probe succeeds, checks that the liveness probe does, and
// returns the time since the start.
func (c *runningContainer) waitReady(t *testing.T) time.Duration {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	var err error
	for ctx.Err() == nil {
		if err = c.probe(ctx, c.spec.ReadinessProbe); err == nil {
			took := time.Since(c.since)
			if err := c.probe(ctx, c.spec.LivenessProbe); err != nil {
				t.Fatalf("%s: liveness: %v", c.name, err)
			}
			return took
		}
		time.Sleep(5 * time.Millisecond) // a probe, too, asks again after some time
	}
	c.cmd.Process.Kill() //nolint:errcheck // the test fails anyway
	c.cmd.Wait()         //nolint:errcheck // see above
	t.Fatalf("%s is not ready: %v\n%s", c.name, err, c.log)
	return 0
}

// probe sends the request of a probe.
func (c *runningContainer) probe(ctx context.Context, p *corev1.Probe) error {
	for _, port := range c.spec.Ports {
		if port.Name != p.HTTPGet.Port.StrVal {
			continue
		}
		url := fmt.Sprintf("http://127.0.0.1:%d%s", port.ContainerPort, p.HTTPGet.Path)
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close() //nolint:errcheck // only the status matters
		if resp.StatusCode >= http.StatusBadRequest {
			return fmt.Errorf("%s: %s", url, resp.Status)
		}
		return nil
	}
	return fmt.Errorf("no port %s", p.HTTPGet.Port.StrVal)
}

// runCanary runs the container of helm test.
func runCanary(t *testing.T, spec corev1.Container) {
	t.Helper()
	c := container{args: spec.Args}
	for _, e := range spec.Env {
		c.env = append(c.env, e.Name+"="+e.Value)
	}
	out, err := c.command(t.Context(), t).CombinedOutput()
	if err != nil {
		t.Errorf("canary: %v\n%s", err, out)
	}
}

// checkStrategies requests a strategy of the example split.yaml from the agent, which gets it from
// the collector, which reads it from the config map.
func checkStrategies(t *testing.T) {
	t.Helper()
	resp, err := http.Get("http://" + fullName + "-agent:5778/sampling?service=checkout")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // everything needed has been read
	body, err := io.ReadAll(resp.Body)
	if err != nil || !strings.Contains(string(body), `"samplingRate":1`) {
		t.Errorf("strategy: %s, %v", body, err)
	}
	http.DefaultClient.CloseIdleConnections()
}

// stop ends a container as Kubernetes does.
func (c *runningContainer) stop(t *testing.T) {
	t.Helper()
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Errorf("%s: %v", c.name, err)
	}
	if err := c.cmd.Wait(); err != nil {
		t.Errorf("%s: %v\n%s", c.name, err, c.log)
	}
}
