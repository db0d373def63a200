package packages

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/test/harness"
	"github.com/tracing-backend/tracing/tools/internal/external"
)

// fake returns options for packages of a file that is not a program, in new folders.
func fake(t *testing.T) Options {
	t.Helper()
	program := filepath.Join(t.TempDir(), "tracing")
	if err := os.WriteFile(program, []byte("program"), 0o600); err != nil {
		t.Fatal(err)
	}
	return Options{
		Dir: harness.Root(t), Version: "1.2.3-rc.1", Arch: "arm64", Program: program, Licenses: program,
		Time: time.Unix(1e9, 0).UTC(), Out: t.TempDir(),
	}
}

// The bytes of packages depend on neither folders, the time nor the modes of files.
func TestReproducible(t *testing.T) {
	var builds [2]map[string][]byte
	for i := range builds {
		o := fake(t)
		if err := os.Chmod(o.Program, os.FileMode(0o600+i*0o77)); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(o.Program, time.Time{}, time.Unix(int64(i), 0)); err != nil {
			t.Fatal(err)
		}
		paths, err := Build(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		builds[i] = map[string][]byte{}
		for _, p := range paths {
			if builds[i][filepath.Base(p)], err = os.ReadFile(p); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, name := range []string{"tracing_1.2.3~rc.1_arm64.deb", "tracing-1.2.3~rc.1-1.aarch64.rpm"} {
		if len(builds[0][name]) == 0 || !bytes.Equal(builds[0][name], builds[1][name]) {
			t.Errorf("%s: %d bytes and %d bytes are not the same package", name, len(builds[0][name]), len(builds[1][name]))
		}
	}
}

func TestDebFields(t *testing.T) {
	external.Require(t, "dpkg-deb", "dpkg")
	f := asker(t, 0, "dpkg-deb")
	f("Architecture: arm64", "--info")
	f("Pre-Depends: passwd", "--info")
	f("Recommends: ca-certificates", "--info")
	f("-rwxr-xr-x root/root ", "--contents")
	f("-rw-r----- root/tracing ", "--contents")
	f("./usr/share/doc/tracing/THIRD_PARTY_LICENSES.txt", "--contents")
}

func TestRPMFields(t *testing.T) {
	external.Require(t, "rpm", "rpm")
	f := asker(t, 1, "rpm", "--query", "--package")
	f("aarch64", "--queryformat", "%{ARCH}")
	f("/usr/sbin/useradd\n", "--requires")
	f("ca-certificates", "--recommends")
	f("/etc/default/tracing-agent\n", "--configfiles")
	f("/etc/tracing/agent.yaml\n", "--configfiles")
}

// asker builds the packages and returns a function that runs a command with arguments and the path
// of one of them, and checks what it prints.
func asker(t *testing.T, which int, command ...string) func(want string, args ...string) {
	t.Helper()
	paths, err := Build(t.Context(), fake(t))
	if err != nil {
		t.Fatal(err)
	}
	return func(want string, args ...string) {
		t.Helper()
		all := slices.Concat(command[1:], args, paths[which:which+1])
		out, err := exec.Command(command[0], all...).CombinedOutput()
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("%s %v: %v, want %q in\n%s", command[0], all, err, want, out)
		}
	}
}

func TestVersions(t *testing.T) {
	for _, v := range []string{"", "dev", "v1.2.3", "1.2", "1.2.3 4"} {
		o := fake(t)
		o.Version = v
		if _, err := Build(t.Context(), o); err == nil || !strings.Contains(err.Error(), "not of the form 1.2.3") {
			t.Errorf("version %q: %v", v, err)
		}
	}
}

// The units differ in their names only, so that a setting that one needs is not forgotten in
// another.
func TestUnitsAreEqual(t *testing.T) {
	var first string
	for _, p := range presets {
		b, err := os.ReadFile(filepath.Join(harness.Root(t), "deploy", "systemd", "tracing-"+p+".service"))
		if err != nil {
			t.Fatal(err)
		}
		text := regexp.MustCompile(`(?m)^Description=.*$`).ReplaceAllString(string(b), "Description=")
		text = strings.ReplaceAll(text, p, "PRESET")
		if first == "" {
			first = text
		}
		if text != first {
			t.Errorf("tracing-%s.service differs from tracing-%s.service in more than its preset", p, presets[0])
		}
	}
}

// What the configuration and environment files of the packages suggest is valid, with and without
// the comment signs.
func TestConfigurationFiles(t *testing.T) {
	dir := filepath.Join(harness.Root(t), "deploy", "packages")
	for _, p := range presets {
		b, err := os.ReadFile(filepath.Join(dir, "config", p+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		head, example, found := strings.Cut(string(b), "#\n")
		if !found {
			t.Errorf("%s.yaml: no example", p)
		}
		for _, text := range []string{string(b), head + strings.ReplaceAll("\n"+example, "\n# ", "\n")} {
			file := filepath.Join(t.TempDir(), "tracing.yaml")
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			code, _, stderr := harness.Command(t, "validate", p, "--strict", "--data-dir", t.TempDir(), "--config", file)
			if code != 0 {
				t.Errorf("%s.yaml: %s\n%s", p, stderr, text)
			}
		}
		variables, err := os.ReadFile(filepath.Join(dir, "environment", "tracing-"+p))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^#([A-Z_]+)=(.*)$`).FindAllStringSubmatch(string(variables), -1) {
			if m[1] != "ARGS" {
				t.Setenv(m[1], m[2])
				continue
			}
			code, _, stderr := harness.Command(t, "validate", p, "--strict", "--data-dir", t.TempDir(), strings.Trim(m[2], `"`))
			if code != 0 {
				t.Errorf("tracing-%s: %s: %s", p, m[0], stderr)
			}
		}
	}
}
