package engine_test

import (
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/tracing-backend/tracing/test/engines/clickhouse/engine"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// npm writes the library below the folder after --prefix. If the variable INTERRUPTED is set, it
// fails after half of it.
const npm = `#!/bin/sh
while [ "$1" != --prefix ]; do shift; done
mkdir -p "$2/node_modules/@chdb/lib-linux-x64-gnu"
echo half >"$2/node_modules/@chdb/lib-linux-x64-gnu/libchdb.so"
[ -z "$INTERRUPTED" ] || exit 1
echo whole >"$2/node_modules/@chdb/lib-linux-x64-gnu/libchdb.so"
`

// An interrupted download does not count as an installation.
func TestInstallAfterInterruption(t *testing.T) {
	tools, cache := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(tools, "npm"), []byte(npm), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", tools+string(os.PathListSeparator)+os.Getenv("PATH"))
	t.Setenv("HOME", cache)
	t.Setenv("XDG_CACHE_HOME", cache)
	t.Setenv("TRACING_CHDB_LIB", "")
	t.Setenv("INTERRUPTED", "1")
	if lib, err := engine.Install(); err == nil {
		t.Fatalf("installed %s", lib)
	}
	t.Setenv("INTERRUPTED", "")
	lib, err := engine.Install()
	if err != nil {
		t.Fatal(err)
	}
	if content, err := os.ReadFile(lib); string(content) != "whole\n" {
		t.Errorf("library %q, %v", content, err)
	}
	if left, err := filepath.Glob(filepath.Join(cache, "*", "unpack-*")); len(left) > 0 || err != nil {
		t.Errorf("left %v, %v", left, err)
	}
}
