package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// wantedPackages are the packages that are always unpacked: the server, and ZooKeeper with the
// libraries that it needs for a single server.
var wantedPackages = []string{
	"clickhouse-server", "clickhouse-common",
	"libzookeeper-java", "libdropwizard-metrics-java", "libsnappy-java", "libslf4j-java",
}

// marker is the file that exists in the folder of a complete installation. It lists the packages.
const marker = "packages.txt"

// Folder returns the cache folder of the unpacked packages, whether it exists or not.
func Folder() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(cache, "tracing-engines", "clickhouse-18.16"), nil
}

// Installed returns nil if the cluster can be started, and otherwise an error that says what is
// missing.
func Installed() error {
	folder, err := Folder()
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(folder, marker)); err != nil {
		return errors.New(`clickhouse 18.16 is not installed in the cache folder; run "make test-engines"`)
	}
	if _, err := exec.LookPath("java"); err != nil {
		return errors.New("java is not installed, which ZooKeeper needs; install a Java runtime of version 11 or later")
	}
	return nil
}

// Install downloads the packages with apt-get and unpacks them into [Folder], unless that is done.
// It changes nothing else on the machine. Progress goes to log.
func Install(ctx context.Context, log io.Writer) error {
	if Installed() == nil {
		return nil
	}
	for _, tool := range []string{"apt-get", "dpkg", "java"} {
		if _, err := exec.LookPath(tool); err != nil {
			return fmt.Errorf("%s is not installed; the cluster of ClickHouse 18.16 needs Debian 12 and a Java runtime", tool)
		}
	}
	folder, err := Folder()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(folder), 0o755); err != nil {
		return err
	}
	temporary, err := os.MkdirTemp(filepath.Dir(folder), "unpack-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temporary)
	if err := unpack(ctx, temporary, log); err != nil {
		return err
	}
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	if err := os.Rename(temporary, folder); err != nil && Installed() != nil { // another process may have been faster
		return err
	}
	return nil
}

// unpack downloads and unpacks the packages into a folder.
func unpack(ctx context.Context, folder string, log io.Writer) error {
	downloads := filepath.Join(folder, "downloads")
	names, err := download(ctx, downloads, log)
	if err != nil { // the lists of packages may be missing or old
		if _, updateErr := output(ctx, "", "apt-get", "update", "-q"); updateErr != nil {
			return errors.Join(err, updateErr)
		}
		if names, err = download(ctx, downloads, log); err != nil {
			return err
		}
	}
	files, err := filepath.Glob(filepath.Join(downloads, "*.deb"))
	if err != nil {
		return err
	}
	for _, file := range files {
		if _, err := output(ctx, "", "dpkg", "-x", file, folder); err != nil {
			return err
		}
	}
	if err := os.RemoveAll(downloads); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, marker), []byte(strings.Join(names, "\n")+"\n"), 0o644)
}

// download downloads the packages into a new folder and returns their names.
func download(ctx context.Context, folder string, log io.Writer) (names []string, err error) {
	if names, err = packages(ctx); err != nil {
		return nil, err
	}
	if err := os.RemoveAll(folder); err != nil {
		return nil, err
	}
	if err := os.Mkdir(folder, 0o755); err != nil {
		return nil, err
	}
	fmt.Fprintf(log, "downloading %d packages of ClickHouse 18.16 and ZooKeeper\n", len(names))
	_, err = output(ctx, folder, "apt-get", append([]string{"download", "-q"}, names...)...)
	return names, err
}

// packages returns the names of the wanted packages and of the libraries that the server needs and
// the machine does not have.
func packages(ctx context.Context) ([]string, error) {
	plan, err := output(ctx, "", "apt-get", "--simulate", "install", "--no-install-recommends", "clickhouse-server")
	if err != nil {
		return nil, err
	}
	names := slices.Clone(wantedPackages)
	for line := range strings.Lines(plan) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "Inst" {
			names = append(names, f[1])
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// output runs a command and returns what it writes to its standard output. An error has what it
// writes to its standard error.
func output(ctx context.Context, dir, name string, args ...string) (string, error) {
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", name, args[0], err, bytes.TrimSpace(stderr.Bytes()))
	}
	return stdout.String(), nil
}
