package cluster_test

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/tracing-backend/tracing/test/engines/clickhouse/cluster"
)

// aptGet downloads packages after an update only, as with lists that name removed versions.
const aptGet = `#!/bin/sh
case $1 in
update) touch "$LISTS" ;;
download) touch new.deb && [ -e "$LISTS" ] || { echo "404  Not Found" >&2; exit 100; } ;;
esac
`

// The installation updates the lists of packages if a package cannot be downloaded.
func TestInstallWithOldLists(t *testing.T) {
	tools, home := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{"apt-get": aptGet, "dpkg": "#!/bin/sh\n", "java": "#!/bin/sh\n"} {
		if err := os.WriteFile(filepath.Join(tools, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", tools+string(os.PathListSeparator)+os.Getenv("PATH"))
	t.Setenv("HOME", home)
	t.Setenv("XDG_CACHE_HOME", home)
	t.Setenv("LISTS", filepath.Join(home, "lists"))
	if err := cluster.Install(t.Context(), io.Discard); err != nil {
		t.Fatal(err)
	}
	if err := cluster.Installed(); err != nil {
		t.Error(err)
	}
}
