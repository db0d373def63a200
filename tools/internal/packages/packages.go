// Package packages makes packages for Debian and for distributions with RPM. They install the
// program, systemd units, and configuration files that a user may change.
package packages

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb" // the formats register themselves
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm"
)

// Options say what to package.
type Options struct {
	Dir      string    // folder of the repository
	Version  string    // version of the program: 1.2.3 or 1.2.3-rc.1
	Arch     string    // architecture of the program, as GOARCH: amd64 or arm64
	Program  string    // path of the program for Linux
	Licenses string    // path of the licenses of libraries; "" leaves them out
	Time     time.Time // time of all files
	Out      string    // folder for the packages
}

// presets are the presets that have a unit, a configuration file and an environment file.
var presets = [...]string{"all-in-one", "agent", "collector", "ingester", "query"}

// version is what both formats accept and sort as intended.
var version = regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.]+)?$`)

// Build writes a deb and an rpm, and returns their paths. The same options and files give the same
// bytes.
func Build(ctx context.Context, o Options) (paths []string, err error) {
	if !version.MatchString(o.Version) {
		return nil, fmt.Errorf("version %q: not of the form 1.2.3 or 1.2.3-rc.1", o.Version)
	}
	for _, format := range []string{"deb", "rpm"} {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		path, err := o.write(format)
		if err != nil {
			return nil, fmt.Errorf("%s package for %s: %w", format, o.Arch, err)
		}
		paths = append(paths, path)
	}
	return paths, nil
}

// write writes a package in one format.
func (o Options) write(format string) (path string, err error) {
	packager, err := nfpm.Get(format)
	if err != nil {
		return "", err
	}
	info := nfpm.WithDefaults(o.info()) // packagers change it
	if format == "rpm" {
		info.Depends = rpmDepends
	}
	if err := nfpm.PrepareForPackager(info, format); err != nil {
		return "", err
	}
	path = filepath.Join(o.Out, packager.ConventionalFileName(info))
	f, err := os.Create(path)
	if err != nil {
		return "", err
	}
	return path, errors.Join(packager.Package(info, f), f.Close())
}

// rpmDepends are the programs with which preinstall.sh creates the user. The packages that contain
// them have different names in the distributions.
var rpmDepends = []string{"/usr/sbin/groupadd", "/usr/sbin/useradd"}

// description is shown by package managers.
const description = `distributed tracing backend
Receives, stores and shows traces. Units of systemd run all of it in one
process, or as agent, collector, ingester and query service.`

// info describes the package.
func (o Options) info() *nfpm.Info {
	script := func(name string) string { return filepath.Join(o.Dir, "deploy", "packages", "scripts", name+".sh") }
	return &nfpm.Info{
		Name: "tracing", Arch: o.Arch, Version: o.Version, MTime: o.Time, Section: "net", Priority: "optional",
		Maintainer: "tracing maintainers", Vendor: "tracing", License: "Apache-2.0", Description: description,
		Overridables: nfpm.Overridables{
			Contents: o.contents(),
			Scripts: nfpm.Scripts{
				PreInstall: script("preinstall"), PostInstall: script("postinstall"),
				PreRemove: script("preremove"), PostRemove: script("postremove"),
			},
			Recommends: []string{"ca-certificates"},              // for connections with TLS to other machines
			Deb:        nfpm.Deb{Predepends: []string{"passwd"}}, // preinstall.sh creates the user
			RPM:        nfpm.RPM{BuildHost: "localhost"},
		},
	}
}

// Modes of files.
const (
	modeProgram = 0o755
	modePublic  = 0o644
	modePrivate = 0o640 // for root and the services: a configuration may hold passwords
)

// contents returns the files of the package.
func (o Options) contents() (all files.Contents) {
	add := func(kind, group string, mode os.FileMode, to string, from ...string) {
		all = append(all, &files.Content{
			Source: filepath.Join(from...), Destination: to, Type: kind,
			FileInfo: &files.ContentFileInfo{Owner: "root", Group: group, Mode: mode, MTime: o.Time},
		})
	}
	const docs = "/usr/share/doc/tracing/"
	add(files.TypeFile, "root", modeProgram, "/usr/bin/tracing", o.Program)
	add(files.TypeFile, "root", modePublic, docs+"linux.md", o.Dir, "docs", "deploy", "linux.md")
	add(files.TypeFile, "root", modePublic, docs+"copyright", o.Dir, "LICENSE")
	if o.Licenses != "" {
		add(files.TypeFile, "root", modePublic, docs+"THIRD_PARTY_LICENSES.txt", o.Licenses)
	}
	for _, p := range presets {
		service := "tracing-" + p
		add(files.TypeFile, "root", modePublic, "/usr/lib/systemd/system/"+service+".service", o.Dir, "deploy", "systemd", service+".service")
		add(files.TypeConfigNoReplace, "tracing", modePrivate, "/etc/tracing/"+p+".yaml", o.Dir, "deploy", "packages", "config", p+".yaml")
		add(files.TypeConfigNoReplace, "tracing", modePrivate, "/etc/default/"+service, o.Dir, "deploy", "packages", "environment", service)
	}
	return all
}
