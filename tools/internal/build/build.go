// Package build builds the program for releases, packages, images and tests.
//
// A build is reproducible: the bytes of the program depend on the sources, the version, the commit,
// the target and the Go toolchain, and on neither the folder, the machine nor the user's settings.
package build

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"
)

// Module is the path of the program's Go module.
const Module = "github.com/tracing-backend/tracing"

// Options say what to build.
type Options struct {
	Dir     string // folder of the repository
	OS      string // as GOOS; "" for the system of this machine
	Arch    string // as GOARCH; "" for the architecture of this machine
	Version string // what `tracing version` prints
	Out     string // path of the program
}

// Program builds the program. The web UI is built first if its sources have changed since its last
// build.
func Program(ctx context.Context, o Options) error {
	commit, err := Head(ctx, o.Dir)
	if err != nil {
		return err
	}
	ldflags, err := o.linkerFlags(commit)
	if err != nil {
		return err
	}
	out, err := filepath.Abs(o.Out)
	if err != nil {
		return err
	}
	if err := UI(ctx, o.Dir, false); err != nil {
		return err
	}
	args := []string{"build", "-trimpath", "-buildvcs=false", "-ldflags=" + ldflags}
	cmd := exec.CommandContext(ctx, "go", append(args, "-o", out, "./cmd/tracing")...)
	cmd.Env = o.environment(os.Environ())
	return run(cmd, o.Dir)
}

// UI builds the web UI into the folder that the program embeds: always, or only if its sources have
// changed.
func UI(ctx context.Context, dir string, always bool) error {
	cmd := exec.CommandContext(ctx, "ui/build/run")
	if !always {
		cmd.Args = append(cmd.Args, "--if-needed")
	}
	return run(cmd, dir)
}

// version is what the linker accepts between its other flags.
var version = regexp.MustCompile(`^[0-9A-Za-z.+~_-]+$`)

// linkerFlags returns the flags that set the version and the commit, and that leave out symbols.
func (o Options) linkerFlags(c Commit) (string, error) {
	if !version.MatchString(o.Version) {
		return "", fmt.Errorf("version %q: only letters, digits and .+~_- are allowed", o.Version)
	}
	flags := "-s -w -X " + Module + "/pipeline/app.version=" + o.Version
	if c.ID != "" {
		flags += " -X " + Module + "/pipeline/app.commit=" + c.ID +
			" -X " + Module + "/pipeline/app.date=" + c.Time.Format(time.RFC3339)
	}
	return flags, nil
}

// environment returns the variables of the go command, given those of this process. It sets those
// that change the program. GOFLAGS is not empty, because the value of `go env -w` would apply then.
func (o Options) environment(process []string) []string {
	goos, goarch := o.target()
	return append(slices.Clone(process), "GOOS="+goos, "GOARCH="+goarch, "GOAMD64=v1", "GOARM64=v8.0", "CGO_ENABLED=0",
		"GOFLAGS=-mod=readonly", "GOWORK=off", "GOEXPERIMENT=", "GOFIPS140=off")
}

// target returns the operating system and architecture to build for.
func (o Options) target() (goos, goarch string) {
	goos, goarch = o.OS, o.Arch
	if goos == "" {
		goos = runtime.GOOS
	}
	if goarch == "" {
		goarch = runtime.GOARCH
	}
	return goos, goarch
}

// run runs a command in a folder. The error has what the command printed.
func run(cmd *exec.Cmd, dir string) error {
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}
