package commands_test

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/internal/golden"
	"github.com/tracing-backend/tracing/test/harness"
)

// doctorReport is the output of `tracing doctor --json`.
type doctorReport struct {
	Version string
	Running bool
	Verdict string
	Checks  []struct {
		Check, Verdict string
		Findings       []struct{ Subject, Verdict, Found, Advice string }
	}
}

// doctor runs the command and returns its exit code and report.
func doctor(t *testing.T, args ...string) (code int, report doctorReport) {
	t.Helper()
	return doctorOutput(t, exec.Command(harness.Binary(t), append(append([]string{"doctor"}, args...), "--json")...))
}

func doctorOutput(t *testing.T, cmd *exec.Cmd) (code int, report doctorReport) {
	t.Helper()
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		code = exit.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out, &report); err != nil {
		t.Fatalf("exit code %d, %v: %s", code, err, out)
	}
	return code, report
}

// of returns the findings of a check as lines.
func (r *doctorReport) of(check string) (lines []string) {
	for _, c := range r.Checks {
		for _, f := range c.Findings {
			if c.Check == check {
				lines = append(lines, fmt.Sprintf("%s %s: %s -> %s", f.Verdict, f.Subject, f.Found, f.Advice))
			}
		}
	}
	return lines
}

// has reports a check without a finding that has all words.
func (r *doctorReport) has(t *testing.T, check string, words ...string) {
	t.Helper()
	for _, line := range r.of(check) {
		if !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(line, w) }) {
			return
		}
	}
	t.Errorf("check %s has no finding with %q:\n%s", check, words, strings.Join(r.of(check), "\n"))
}

// hostDependent are the checks whose verdicts depend on the machine.
var hostDependent = []string{"clock", "fsync", "disk", "files", "memory", "udp"}

// shape returns the parts of a report that are the same on every machine.
func (r *doctorReport) shape(host, dir string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "running: %t\n", r.Running)
	for _, c := range r.Checks {
		fmt.Fprintf(&b, "%s\n", c.Check)
		for _, f := range c.Findings {
			subject := strings.NewReplacer(host, "HOST", dir, "DIR").Replace(f.Subject)
			if slices.Contains(hostDependent, c.Check) {
				fmt.Fprintf(&b, "  %q\n", subject)
			} else {
				fmt.Fprintf(&b, "  %s %q\n", f.Verdict, subject)
			}
		}
	}
	return b.String()
}

// ownHost returns an address of the loopback interface that no other test uses at the same time, so
// that presets listen on their usual ports.
func ownHost(t *testing.T, n int) string {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("addresses such as 127.0.0.2 need Linux")
	}
	pid := os.Getpid()
	return fmt.Sprintf("127.%d.%d.%d", 1+pid>>16&0x7f, pid>>8&0xff, (pid+n)&0xff|1)
}

// A healthy all-in-one process: before its start all ports are free, and afterwards every receiver
// passes a test span that is read back.
func TestDoctorAllInOne(t *testing.T) {
	host, dir := ownHost(t, 32), t.TempDir()
	t.Setenv("TRACING_LISTEN_HOST", host)
	args := []string{"all-in-one", "--data-dir", dir, "--collector.zipkin.host-port=" + host + ":9411"}
	_, before := doctor(t, args...)
	golden.Check(t, "testdata/doctor-before.txt", before.shape(host, dir))
	harness.Run(t, args...).AwaitReady()
	_, after := doctor(t, args...)
	golden.Check(t, "testdata/doctor-running.txt", after.shape(host, dir))
	after.has(t, "fsync", dir+":")
	after.has(t, "files", "hard limit of process")
	text, _, _ := execute(t, nil, append([]string{"doctor", "--skip", "spans"}, args...)...)
	for _, want := range []string{"checked the running process and its host", "\nports\n  ok ", "  skipped  left out with --skip\n", " ok, "} {
		if !strings.Contains(text, want) {
			t.Errorf("text without %q:\n%s", want, text)
		}
	}
	if left, err := filepath.Glob(filepath.Join(dir, "doctor-*")); err != nil || len(left) > 0 {
		t.Errorf("files were left behind: %v %v", left, err)
	}
}

// Test spans pass an agent and a collector. Without the collector, the next hop is a problem.
func TestDoctorSplit(t *testing.T) {
	agentHost, collectorHost := ownHost(t, 64), ownHost(t, 96)
	t.Setenv("TRACING_COLLECTOR_HOST", collectorHost)
	t.Setenv("TRACING_LISTEN_HOST", agentHost)
	args := []string{"agent", "--data-dir", t.TempDir()}
	code, report := doctor(t, append(args, "--timeout", "2s")...)
	if code != 1 || report.Verdict != "problem" {
		t.Errorf("without a collector: exit code %d, %s", code, report.Verdict)
	}
	report.has(t, "connections", "problem exporters::native ("+collectorHost+":14250)", "cannot connect", "start the process there")
	report.has(t, "connections", "problem extensions::sampling::remote")

	t.Setenv("TRACING_LISTEN_HOST", collectorHost)
	collector := []string{"collector", "--data-dir", t.TempDir(), "--set", "extensions::query::storage=disk",
		"--set", "extensions::query::http::endpoint=" + collectorHost + ":16686",
		"--set", "service::extensions=[sampling, remote_storage, query, admin]"}
	harness.Run(t, collector...).AwaitReady()
	t.Setenv("TRACING_LISTEN_HOST", agentHost)
	harness.Run(t, args...).AwaitReady()
	_, report = doctor(t, append(args, "--query", "http://"+collectorHost+":16686")...)
	report.has(t, "connections", "ok exporters::native", "responds to gRPC calls")
	report.has(t, "sampling", "ok extensions::sampling::http", "PROBABILISTIC")
	report.has(t, "clock", "ok http://"+collectorHost, "clocks agree")
	for _, protocol := range []string{"compact", "binary", "zipkin"} {
		report.has(t, "spans", "ok receivers::thriftudp::"+protocol, "came back")
	}
	_, report = doctor(t, args...)
	report.has(t, "spans", "skipped receivers::thriftudp::compact", "give --query URL")
}

// An exporter that only gets log records is tried at the URL for logs, and no span is sent through
// a receiver that takes none.
func TestDoctorLogs(t *testing.T) {
	hop := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/in/v1/logs" {
			t.Errorf("request to %s", r.URL)
		}
	}))
	defer hop.Close()
	file := filepath.Join(t.TempDir(), "agent.yaml")
	yaml := fmt.Sprintf("receivers: {otlp: {protocols: {http: {endpoint: 'localhost:0'}}}}\nexporters: {otlphttp: {endpoint: '%s/in'}}\n"+
		"service: {pipelines: {logs: {receivers: [otlp], exporters: [otlphttp]}}}", hop.URL)
	if err := os.WriteFile(file, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	_, report := doctor(t, "--config", file)
	report.has(t, "connections", "exporters::otlphttp ("+hop.URL+"/in/v1/logs)")
	report.has(t, "spans", "skipped", "no receivers of spans")
}

// A port that another process uses is named together with the process.
func TestDoctorPortTaken(t *testing.T) {
	host := ownHost(t, 128)
	taken, err := net.Listen("tcp", host+":4317")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close() //nolint:errcheck // was not used
	t.Setenv("TRACING_LISTEN_HOST", host)
	code, report := doctor(t, "--data-dir", t.TempDir())
	if code != 1 || report.Running {
		t.Errorf("exit code %d, running %t", code, report.Running)
	}
	report.has(t, "ports", "problem receivers::otlp::protocols::grpc", fmt.Sprintf("used by process %d (commands.test)", os.Getpid()),
		"change receivers::otlp::protocols::grpc::endpoint")
	report.has(t, "ports", "ok receivers::otlp::protocols::http", "free")
}

// A process that does not answer is one problem: its ports are not free, but there is nothing wrong
// with them.
func TestDoctorProcessHangs(t *testing.T) {
	t.Setenv("TRACING_LISTEN_HOST", ownHost(t, 40))
	dir := t.TempDir()
	p := harness.Run(t, "--data-dir", dir)
	p.AwaitReady()
	p.Signal(syscall.SIGSTOP)
	defer p.Signal(syscall.SIGCONT)
	code, report := doctor(t, "--data-dir", dir, "--timeout", "2s", "--skip", "memory")
	pid := p.Cmd.Process.Pid
	report.has(t, "ports", "problem", fmt.Sprintf("process %d listens, but is stopped by a signal", pid), fmt.Sprintf("kill -CONT %d", pid))
	if problems := report.problems(); code != 1 || report.Running || len(problems) != 1 {
		t.Errorf("exit code %d, running %t, problems:\n%s", code, report.Running, strings.Join(problems, "\n"))
	}
	report.has(t, "spans", "skipped receivers::otlp::protocols::grpc", "process does not respond")
}

// A process with other ports and the same folder prevents the start.
func TestDoctorFolderInUse(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TRACING_LISTEN_HOST", ownHost(t, 48))
	p := harness.Run(t, "--data-dir", dir)
	p.AwaitReady()
	t.Setenv("TRACING_LISTEN_HOST", ownHost(t, 56))
	code, report := doctor(t, "--data-dir", dir)
	report.has(t, "disk", "problem exporters::disk ("+dir+"/disk)", fmt.Sprintf("used by process %d (tracing)", p.Cmd.Process.Pid),
		"set service::data_dir to another folder")
	if code != 1 {
		t.Errorf("exit code %d", code)
	}
	if _, report = doctor(t, "--data-dir", t.TempDir()); len(report.of("disk")) != 1 {
		t.Errorf("new folder: %q", report.of("disk"))
	}
}

// A rate of 0 is a warning, before the start and from a running process.
func TestDoctorSamplesNothing(t *testing.T) {
	t.Setenv("TRACING_LISTEN_HOST", ownHost(t, 64))
	args := []string{"--data-dir", t.TempDir(), "--set", "extensions::sampling::file::default_sampling_probability=0"}
	_, report := doctor(t, args...)
	report.has(t, "sampling", "warning extensions::sampling::file::default_sampling_probability", "is 0: no trace is kept")
	harness.Run(t, args...).AwaitReady()
	_, report = doctor(t, args...)
	report.has(t, "sampling", "warning receivers::native::protocols::http", "clients of the service tracing-doctor record no trace")
	report.has(t, "sampling", "warning receivers::native::protocols::grpc", "record no trace")
}

// Datagrams have the tenant of their receiver, so that another one cannot read them.
func TestDoctorTenantOfDatagrams(t *testing.T) {
	host, dir := ownHost(t, 72), t.TempDir()
	file := filepath.Join(dir, "tracing.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, `
receivers: {thriftudp: {tenant: acme, compact: {endpoint: "%[1]s:6831"}}}
exporters: {memory: }
extensions: {query: {storage: memory, http: {endpoint: "%[1]s:16686", tenancy: {header: x-scope-orgid}}}}
service: {data_dir: %[2]s/data, extensions: [query], pipelines: {traces: {receivers: [thriftudp], exporters: [memory]}}}
`, host, dir), 0o600); err != nil {
		t.Fatal(err)
	}
	harness.Run(t, "--config", file).AwaitReady()
	_, report := doctor(t, "--config", file, "--tenant", "birds")
	report.has(t, "spans", "skipped receivers::thriftudp::compact", `tenant of the receiver ("acme"), not the tenant of --tenant ("birds")`)
	_, report = doctor(t, "--config", file, "--tenant", "acme")
	report.has(t, "spans", "ok receivers::thriftudp::compact", "came back")
}

// problems returns the problems, except from checks that depend on the machine.
func (r *doctorReport) problems() (lines []string) {
	for _, c := range r.Checks {
		for _, line := range r.of(c.Check) {
			if strings.HasPrefix(line, "problem") && !slices.Contains(hostDependent, c.Check) {
				lines = append(lines, line)
			}
		}
	}
	return lines
}

// detectable is a collector with an observer, whose block is empty or a line.
const detectable = `
receivers: {otlp: {protocols: {http: {endpoint: "%[1]s:4318", auth: {bearer_tokens_file: %[2]s/token}, tenancy: {header: x-scope-orgid}}}}}
exporters: {disk: {directory: %[2]s/store}, disk/2: {directory: %[2]s/other/store}}
extensions:
  query: {storage: disk, http: {endpoint: "%[1]s:16686", tenancy: {header: x-scope-orgid}}}
  %[3]s
service:
  data_dir: %[2]s/data
  extensions: [query%[4]s]
  pipelines: {traces: {receivers: [otlp], exporters: [disk, disk/2]}}
`

// The running process is found through health_check, through an admin API also without credentials
// for it, and without these extensions by the program that listens. Another program is not taken
// for it.
func TestDoctorFindsTheProcess(t *testing.T) {
	host := ownHost(t, 16)
	for name, test := range map[string]struct{ block, name, version string }{
		"health_check": {`health_check: {endpoint: "` + host + `:13133"}`, ", health_check", "this is version"},
		"admin": {`admin: {endpoint: "` + host + `:14269", auth: {bearer_tokens_file: DIR/token}}`, ", admin",
			"and this command have version"},
		"neither": {"", "", "this is version"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			file := filepath.Join(dir, "tracing.yaml")
			if err := os.WriteFile(filepath.Join(dir, "token"), []byte("secret\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			block := strings.ReplaceAll(test.block, "DIR", dir)
			if err := os.WriteFile(file, fmt.Appendf(nil, detectable, host, dir, block, test.name), 0o600); err != nil {
				t.Fatal(err)
			}
			other, err := net.Listen("tcp", host+":4318")
			if err != nil {
				t.Fatal(err)
			}
			defer other.Close() //nolint:errcheck // closed already, unless the test ends early
			_, report := doctor(t, "--config", file)
			other.Close() //nolint:errcheck // was not used
			if report.Running {
				t.Error("another program is taken for the process")
			}
			report.has(t, "ports", "problem receivers::otlp::protocols::http", "used by process")

			harness.Run(t, "--config", file).AwaitReady()
			_, report = doctor(t, "--config", file, "--tenant", "birds")
			report.has(t, "fsync", dir+"/store:")
			report.has(t, "fsync", dir+"/other/store:")
			if !report.Running {
				t.Error("process is not found without credentials")
			}
			report.has(t, "versions", "this is version")
			report.has(t, "spans", "skipped", "clients must authenticate")
			_, report = doctor(t, "--config", file, "--tenant", "birds", "--header", "Authorization: Bearer secret")
			report.has(t, "versions", test.version)
			report.has(t, "spans", "ok receivers::otlp::protocols::http", "came back")
		})
	}
}

// Secrets in URLs are not printed.
func TestDoctorMasksURLs(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tracing.yaml")
	const config = `
receivers: {otlp: {protocols: {http: {endpoint: "localhost:0"}}}}
exporters: {otlphttp: {traces_endpoint: "http://localhost:1/v1/traces?api-key=secret"}}
service: {pipelines: {traces: {receivers: [otlp], exporters: [otlphttp]}}}
`
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	_, report := doctor(t, "--config", file, "--query", "http://localhost:1/?key=secret")
	report.has(t, "connections", "problem exporters::otlphttp (http://localhost:1/v1/traces?api-key=***)")
	report.has(t, "clock", "skipped http://localhost:1/?key=***")
	if text := fmt.Sprint(report); strings.Contains(text, "secret") {
		t.Error(text)
	}
}

// expiredConfig is a collector with an expired certificate, and a next hop that has one.
const expiredConfig = `
receivers: {otlp: {protocols: {http: {endpoint: "localhost:0", tls: {cert_file: %[1]s/cert.pem, key_file: %[1]s/key.pem}}}}}
exporters: {otlp: {endpoint: %[2]q, tls: {ca_file: %[1]s/cert.pem}}}
service: {pipelines: {traces: {receivers: [otlp], exporters: [otlp]}}}
`

// Expired certificates of files and of next hops are named with the day on which they expired.
func TestDoctorExpiredCertificate(t *testing.T) {
	dir := t.TempDir()
	harness.SelfSignedUntil(t, dir, time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC))
	cert, err := tls.LoadX509KeyPair(filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.TLS = &tls.Config{Certificates: []tls.Certificate{cert}}
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	address := strings.Replace(server.Listener.Addr().String(), "127.0.0.1", "localhost", 1)
	file := filepath.Join(dir, "tracing.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, expiredConfig, dir, address), 0o600); err != nil {
		t.Fatal(err)
	}
	code, report := doctor(t, "--config", file)
	if code != 1 {
		t.Errorf("exit code %d", code)
	}
	const expired = `certificate of "localhost" expired on 2026-02-03T04:05:06Z`
	report.has(t, "connections", "problem exporters::otlp ("+address+")", expired, "replace the certificate of the server")
	report.has(t, "certificates", "problem receivers::otlp::protocols::http::tls::cert_file ("+dir+"/cert.pem)", expired)
	report.has(t, "fsync", "skipped", "no component of the configuration keeps spans on disk")
}

// mutualTLS is a preset whose listeners want client certificates, and credentials for queries.
const mutualTLS = `
receivers:
  otlp:
    protocols:
      grpc: {tls: {cert_file: %[1]s/cert.pem, key_file: %[1]s/key.pem, client_ca_file: %[1]s/cert.pem}}
      http: {tls: {cert_file: %[1]s/cert.pem, key_file: %[1]s/key.pem, client_ca_file: %[1]s/cert.pem}}
extensions:
  query: {http: {tls: {cert_file: %[1]s/cert.pem, key_file: %[1]s/key.pem}}}
`

// withoutCertificate has a next hop that wants a client certificate, and no certificate for it.
const withoutCertificate = `
receivers: {otlp: {protocols: {http: {endpoint: "localhost:0"}}}}
exporters: {otlp: {endpoint: "${TRACING_LISTEN_HOST}:4317", tls: {ca_file: %[1]s/cert.pem, server_name_override: localhost}}}
service: {pipelines: {traces: {receivers: [otlp], exporters: [otlp]}}}
`

// Listeners that want client certificates get them, or are skipped. Senders without one are told
// so.
func TestDoctorMutualTLS(t *testing.T) {
	dir := t.TempDir()
	harness.SelfSigned(t, dir)
	file := filepath.Join(dir, "tracing.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, mutualTLS, dir), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TRACING_LISTEN_HOST", ownHost(t, 192))
	args := []string{"all-in-one", "--config", file, "--data-dir", dir}
	harness.Run(t, args...).AwaitReady()
	_, report := doctor(t, args...)
	report.has(t, "spans", "skipped receivers::otlp::protocols::grpc", "give --cert and --key")
	report.has(t, "spans", "ok receivers::native::protocols::http")
	report.has(t, "certificates", "warning receivers::otlp::protocols::grpc::tls::client_ca_file", `certificate of "localhost" expires in`)
	_, report = doctor(t, append(args, "--cert", dir+"/cert.pem", "--key", dir+"/key.pem")...)
	report.has(t, "spans", "ok receivers::otlp::protocols::grpc", "came back")
	report.has(t, "spans", "ok receivers::otlp::protocols::http", "came back")

	sender := filepath.Join(dir, "sender.yaml")
	if err := os.WriteFile(sender, fmt.Appendf(nil, withoutCertificate, dir), 0o600); err != nil {
		t.Fatal(err)
	}
	_, report = doctor(t, "--config", sender)
	report.has(t, "connections", "problem exporters::otlp", "certificate required", "set tls::cert_file and tls::key_file")
}

// Limits and folders that are too small or cannot be written.
func TestDoctorHost(t *testing.T) {
	t.Setenv("TRACING_LISTEN_HOST", ownHost(t, 160))
	binary := harness.Binary(t)
	cmd := exec.Command("sh", "-c", `ulimit -n 300 && exec "$0" doctor --json --data-dir "$1"`, binary, t.TempDir())
	_, report := doctorOutput(t, cmd)
	report.has(t, "files", "problem", "hard limit of this shell is 300", "LimitNOFILE")

	_, report = doctor(t, "--data-dir", "/proc/tracing")
	report.has(t, "fsync", "problem /proc: cannot write", "service::data_dir")
	cmd = exec.Command(binary, "doctor", "--json", "--data-dir", t.TempDir(), "--set", "service::limits::inflight=256MiB")
	cmd.Env = append(os.Environ(), "GOMEMLIMIT=300MiB")
	_, report = doctorOutput(t, cmd)
	report.has(t, "memory", "problem", "GOMEMLIMIT allows 300 MiB")
	_, report = doctor(t, "--data-dir", t.TempDir(), "--set", "exporters::disk::retention::size=1000TiB")
	report.has(t, "disk", "warning exporters::disk", "the disk is full before", "retention::size to at most")
}

// Disks that are full, read-only or in memory, as mounts that only the command sees.
func TestDoctorDisk(t *testing.T) {
	t.Setenv("TRACING_LISTEN_HOST", ownHost(t, 224))
	binary, dir := harness.Binary(t), t.TempDir()
	mounted := func(commands string) *exec.Cmd {
		return exec.Command("unshare", "--map-root-user", "--mount", "sh", "-c", commands, binary, dir)
	}
	if out, err := mounted(`mount -t tmpfs none "$1"`).CombinedOutput(); err != nil {
		t.Skipf("cannot mount file systems in a namespace: %v: %s", err, out)
	}
	for _, test := range []struct{ mount, verdict, found, advice string }{
		{`mount -t tmpfs -o size=64k none "$1"`, "problem", "no space left on the disk", "enlarge the disk"},
		{`mount -t tmpfs -o ro none "$1"`, "problem", "read-only file system", "make the file system writable"},
		{`mount -t tmpfs -o size=64m none "$1"`, "warning", "file system in memory", "set service::data_dir"},
	} {
		_, report := doctorOutput(t, mounted(test.mount+` && exec "$0" doctor --json --skip memory --data-dir "$1"`))
		report.has(t, "fsync", test.verdict+" "+dir, test.found, test.advice)
	}
}

// Mistakes end the command with exit code 2, as in other commands.
func TestDoctorUsage(t *testing.T) {
	for _, test := range []struct{ args, want string }{
		{"doctor --skip prots", `unknown check "prots"`},
		{"doctor agent collector", `unexpected argument "collector"`},
		{"doctor --query localhost", `--query: "localhost" is not a valid URL`},
		{"doctor --set exporters::disk::syncs=1", "unknown key"},
	} {
		_, stderr, err := execute(t, nil, strings.Fields(test.args)...)
		if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.ExitCode() != 2 || !strings.Contains(stderr, test.want) {
			t.Errorf("%s: %v, without %q: %s", test.args, err, test.want, stderr)
		}
	}
}
