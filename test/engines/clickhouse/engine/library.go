package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Version is the version of the npm package chdb that holds the engine.
const Version = "3.4.0"

// file is the path of the library in the folder of the installation.
var file = filepath.Join("node_modules", "@chdb", "lib-linux-x64-gnu", "libchdb.so")

// Install returns the path of libchdb.so, which it downloads with npm into the user's cache folder
// unless it is there. The environment variable TRACING_CHDB_LIB names another file.
func Install() (string, error) {
	lib, dir, err := library()
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(lib); !errors.Is(err, fs.ErrNotExist) {
		return lib, err
	}
	if dir == "" {
		return "", fmt.Errorf("TRACING_CHDB_LIB: no file %s", lib)
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", err
	}
	temporary, err := os.MkdirTemp(filepath.Dir(dir), "unpack-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(temporary)
	npm := exec.Command("npm", "install", "--ignore-scripts", "--no-save", "--no-audit", "--no-fund", "--prefix", temporary, "chdb@"+Version)
	npm.Stdout, npm.Stderr = os.Stdout, os.Stderr
	if err := npm.Run(); err != nil {
		return "", fmt.Errorf("npm install chdb@%s: %w", Version, err)
	}
	if _, err := os.Stat(filepath.Join(temporary, file)); err != nil {
		return "", err
	}
	if _, err := os.Stat(lib); err == nil { // another process was faster
		return lib, nil
	}
	if err := os.RemoveAll(dir); err != nil {
		return "", err
	}
	return lib, os.Rename(temporary, dir)
}

// library returns where libchdb.so is or would be, and the folder to install it into, or "" if the
// environment names the file.
func library() (lib, dir string, err error) {
	if lib := os.Getenv("TRACING_CHDB_LIB"); lib != "" {
		return lib, "", nil
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", "", err
	}
	dir = filepath.Join(cache, "tracing-engines", "chdb-"+Version)
	return filepath.Join(dir, file), dir, nil
}

// Library returns the path of libchdb.so. It skips the test unless TRACING_ENGINES is 1 and the
// library is installed; if CI is true, a missing library fails the test.
func Library(tb testing.TB) string {
	tb.Helper()
	if os.Getenv("TRACING_ENGINES") != "1" {
		tb.Skip("needs the ClickHouse engine; make test-engines runs it")
	}
	lib, _, err := library()
	if err == nil {
		_, err = os.Stat(lib)
	}
	if err == nil {
		return lib
	}
	if os.Getenv("CI") == "true" {
		tb.Fatalf("the ClickHouse engine is not installed: %v", err)
	}
	tb.Skipf("the ClickHouse engine is not installed (%v); make test-engines installs it", err)
	return ""
}
