package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/tracing-backend/tracing/tools/chart"
	"github.com/tracing-backend/tracing/tools/internal/archive"
	"github.com/tracing-backend/tracing/tools/internal/build"
	"github.com/tracing-backend/tracing/tools/internal/licenses"
	"github.com/tracing-backend/tracing/tools/internal/sbom"
)

// allTargets are the systems for which a release has programs.
var allTargets = []licenses.Target{
	{OS: "linux", Arch: "amd64"}, {OS: "linux", Arch: "arm64"},
	{OS: "darwin", Arch: "amd64"}, {OS: "darwin", Arch: "arm64"},
	{OS: "windows", Arch: "amd64"}, {OS: "windows", Arch: "arm64"},
}

// release makes one release.
type release struct {
	dir, version, out string
	allowDirty        bool
	targets           []licenses.Target
	log               io.Writer

	commit   build.Commit
	modules  []licenses.Item
	ui       []licenses.Item
	texts    []archive.File    // files beside the program in its archive
	programs map[string]string // paths of the programs for Linux, by architecture
}

// run makes the release in a folder beside the final one, and renames it when it is complete.
func (r *release) run(ctx context.Context) error {
	if err := r.check(ctx); err != nil {
		return err
	}
	work, err := os.MkdirTemp(filepath.Dir(r.out), ".release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	files := filepath.Join(work, "files")
	if err := os.Mkdir(files, 0o755); err != nil {
		return err
	}
	// Libraries for packages and images take the time of files from this variable.
	if err := os.Setenv("SOURCE_DATE_EPOCH", strconv.FormatInt(r.commit.Time.Unix(), 10)); err != nil {
		return err
	}
	if err := r.writeTexts(ctx, files); err != nil {
		return err
	}
	r.programs = map[string]string{}
	for _, t := range r.targets {
		if err := r.writeProgram(ctx, t, work, files); err != nil {
			return err
		}
	}
	if err := r.writeDeployment(ctx, files); err != nil {
		return err
	}
	if _, err := chart.Package(chart.Options{Dir: r.dir, Version: r.version, Time: r.commit.Time, Out: files}); err != nil {
		return err
	}
	if err := writeSums(files); err != nil {
		return err
	}
	if err := os.Rename(files, r.out); err != nil {
		return err
	}
	r.say(fmt.Sprintf("release %s of commit %s is in %s", r.version, r.commit.ID, r.out))
	return nil
}

// version is a version of a release, as in semantic versioning.
var version = regexp.MustCompile(`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-(alpha|beta|rc)\.(0|[1-9]\d*))?$`)

// check checks the options, and that the sources have no uncommitted changes.
func (r *release) check(ctx context.Context) (err error) {
	if !version.MatchString(r.version) {
		return fmt.Errorf("version %q: not of the form 1.2.3 or 1.2.3-rc.1; run make release VERSION=1.2.3", r.version)
	}
	if _, err := os.Lstat(r.out); !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("folder %s exists; remove it", r.out)
	}
	if err := os.MkdirAll(filepath.Dir(r.out), 0o755); err != nil {
		return err
	}
	if r.commit, err = build.Head(ctx, r.dir); err != nil {
		return err
	}
	switch {
	case r.commit.ID == "":
		return fmt.Errorf("folder %s is not a git repository; clone the repository", r.dir)
	case strings.HasSuffix(r.commit.ID, "-dirty") && !r.allowDirty:
		return fmt.Errorf("folder %s has files that differ from the commit; commit or remove the changes", r.dir)
	}
	return nil
}

// writeTexts builds the web UI, and writes the release notes and the licenses.
func (r *release) writeTexts(ctx context.Context, out string) error {
	changelog, err := os.ReadFile(filepath.Join(r.dir, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	notes, err := releaseNotes(string(changelog), r.version)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(out, "RELEASE_NOTES.md"), []byte(notes), 0o644); err != nil {
		return err
	}
	if err := r.collectLicenses(ctx); err != nil {
		return err
	}
	var all bytes.Buffer
	if err := licenses.Write(&all, append(r.modules, r.ui...)); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(out, "THIRD_PARTY_LICENSES.txt"), all.Bytes(), 0o644); err != nil {
		return err
	}
	license, err := os.ReadFile(filepath.Join(r.dir, "LICENSE"))
	if err != nil {
		return err
	}
	r.texts = []archive.File{
		{Name: "CHANGELOG.md", Content: changelog, Mode: 0o644},
		{Name: "LICENSE", Content: license, Mode: 0o644},
		{Name: "THIRD_PARTY_LICENSES.txt", Content: all.Bytes(), Mode: 0o644},
	}
	return nil
}

// collectLicenses builds the web UI, for a trial release only if its sources have changed, and
// finds out what is linked into the programs.
func (r *release) collectLicenses(ctx context.Context) (err error) {
	r.say("building the web UI")
	if err := build.UI(ctx, r.dir, !r.allowDirty); err != nil {
		return err
	}
	f, err := os.Open(filepath.Join(r.dir, "internal", "webui", "dist", "THIRD_PARTY_LICENSES.txt.gz"))
	if err != nil {
		return err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return fmt.Errorf("%s: %w", f.Name(), err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		return fmt.Errorf("%s: %w", f.Name(), err)
	}
	if r.ui, err = licenses.UI(string(text)); err != nil {
		return err
	}
	r.modules, err = licenses.Modules(ctx, r.dir, r.targets)
	return err
}

// writeProgram builds the program for a target, and writes its archive and bill of materials.
func (r *release) writeProgram(ctx context.Context, t licenses.Target, work, out string) error {
	name := fmt.Sprintf("tracing_%s_%s_%s", r.version, t.OS, t.Arch)
	r.say("building " + name)
	file, ending := "tracing", ".tar.gz"
	if t.OS == "windows" {
		file, ending = "tracing.exe", ".zip"
	}
	path := filepath.Join(work, t.OS+"-"+t.Arch, file)
	if err := build.Program(ctx, build.Options{Dir: r.dir, OS: t.OS, Arch: t.Arch, Version: r.version, Out: path}); err != nil {
		return err
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if t.OS == "linux" {
		r.programs[t.Arch] = path
	}
	files := append([]archive.File{{Name: file, Content: content, Mode: 0o755}}, r.texts...)
	if err := archive.Write(filepath.Join(out, name+ending), name, r.commit.Time, files); err != nil {
		return err
	}
	return r.writeBill(filepath.Join(out, name+".cdx.json"), sbom.Options{
		Program: path, Name: name, Version: r.version, Time: r.commit.Time, Modules: r.modules, UI: r.ui,
	})
}

// writeBill writes the bill of materials of a program.
func (r *release) writeBill(path string, o sbom.Options) error {
	var b bytes.Buffer
	if err := sbom.Write(&b, o); err != nil {
		return err
	}
	return os.WriteFile(path, b.Bytes(), 0o644)
}

// say prints a line about the progress.
func (r *release) say(what string) { fmt.Fprintln(r.log, what) }
