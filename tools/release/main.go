// Command release makes a release: programs for all targets, packages, images, the Helm chart,
// licenses, bills of materials, release notes and checksums. The same commit, version and Go
// toolchain give the same bytes.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
)

func main() {
	r := release{log: os.Stdout, targets: allTargets}
	flag.StringVar(&r.dir, "dir", "..", "folder of the repository")
	flag.StringVar(&r.version, "version", "", "version: x.y.z, or x.y.z-rc.1 and so on before it")
	flag.StringVar(&r.out, "out", "", "folder for the release, which must not exist")
	flag.BoolVar(&r.allowDirty, "allow-dirty", false, "make a trial release: accept changed files, and a web UI that is current")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := r.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}
