package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const changelog = `# Changelog

## Unreleased

### Added

- Next.

## 1.2.0 (2026-01-31)

- Second.

## 1.1.0

- First.
`

// TestReleaseNotes checks which section of a changelog a version has.
func TestReleaseNotes(t *testing.T) {
	for version, want := range map[string]string{
		"1.3.0-rc.1": "### Added\n\n- Next.\n", "1.2.0": "- Second.\n", "1.1.0": "- First.\n", "1.3.0": "", "1.2": "",
	} {
		got, err := releaseNotes(changelog, version)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q, %v; want %q", version, got, err, want)
		}
	}
	if _, err := releaseNotes("## 1.0.0\n\n## 0.9.0\n\n- x\n", "1.0.0"); err == nil {
		t.Error("a section without text was accepted")
	}
}

// TestChangelogOfRepository checks that a version before the next release can be made.
func TestChangelogOfRepository(t *testing.T) {
	b, err := os.ReadFile("../../CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := releaseNotes(string(b), "0.0.1-rc.1"); err != nil {
		t.Error(err)
	}
}

// TestSums checks the checksums of a folder with sha256sum.
func TestSums(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"b", "a"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := writeSums(dir); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(dir, sumsFile))
	const first = "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb  a\n"
	if err != nil || !strings.HasPrefix(string(b), first) || strings.Count(string(b), "\n") != 2 {
		t.Errorf("%v: %s", err, b)
	}
	if _, err := exec.LookPath("sha256sum"); err != nil {
		t.Skip(err)
	}
	cmd := exec.Command("sha256sum", "--check", "--strict", sumsFile)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// TestRefusedReleases checks that mistakes are found before anything is built.
func TestRefusedReleases(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	for want, r := range map[string]release{
		"not of the form":      {version: "v1.0", dir: "../..", out: out},
		"exists":               {version: "1.0.0", dir: "../..", out: t.TempDir()},
		"not a git repository": {version: "1.0.0", dir: t.TempDir(), out: out},
	} {
		if err := r.run(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v", want, err)
		}
	}
}
