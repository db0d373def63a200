package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/tracing-backend/tracing/tools/internal/archive"
	"github.com/tracing-backend/tracing/tools/internal/image"
	"github.com/tracing-backend/tracing/tools/internal/packages"
)

// writeDeployment writes the packages, the container image, and an archive with the files that
// deployments start from.
func (r *release) writeDeployment(ctx context.Context, out string) error {
	r.say("writing the packages, the image and the files for deployments")
	licenses := filepath.Join(out, "THIRD_PARTY_LICENSES.txt")
	for arch, program := range r.programs {
		_, err := packages.Build(ctx, packages.Options{
			Dir: r.dir, Version: r.version, Arch: arch, Program: program,
			Licenses: licenses, Time: r.commit.Time, Out: out,
		})
		if err != nil {
			return err
		}
	}
	if len(r.programs) > 0 {
		err := image.Write(ctx, image.Options{
			Dir: r.dir, Version: r.version, Programs: r.programs, Out: filepath.Join(out, "tracing_"+r.version+"_oci.tar"),
			Licenses: []string{filepath.Join(r.dir, "LICENSE"), licenses},
		})
		if err != nil {
			return err
		}
	}
	files, err := r.deploymentFiles(ctx)
	if err != nil {
		return err
	}
	name := "tracing_" + r.version + "_deploy"
	return archive.Write(filepath.Join(out, name+".tar.gz"), name, r.commit.Time, files)
}

// deploymentFiles returns the tracked files for Compose, packages, systemd and monitoring, sorted
// by name.
func (r *release) deploymentFiles(ctx context.Context) ([]archive.File, error) {
	cmd := exec.CommandContext(ctx, "git", "ls-files", "-z", "compose", "monitoring", "packages", "systemd")
	cmd.Dir = filepath.Join(r.dir, "deploy")
	names, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("git ls-files in %s: %w", cmd.Dir, err)
	}
	var files []archive.File
	for name := range strings.SplitSeq(strings.TrimSuffix(string(names), "\x00"), "\x00") {
		content, err := os.ReadFile(filepath.Join(cmd.Dir, name))
		if err != nil {
			return nil, err
		}
		files = append(files, archive.File{Name: name, Content: content, Mode: 0o644})
	}
	return files, nil
}
