package image_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"github.com/tracing-backend/tracing/test/harness"
	"github.com/tracing-backend/tracing/tools/internal/image"
)

// write writes an image with the given programs and licenses, and returns the path of the archive.
func write(t *testing.T, programs map[string]string, licenses ...string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "tracing.tar")
	o := image.Options{Dir: harness.Root(t), Version: "1.2.3", Programs: programs, Licenses: licenses, Out: out}
	if err := image.Write(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	return out
}

// fakes returns programs for two architectures.
func fakes(t *testing.T) map[string]string {
	t.Helper()
	programs := make(map[string]string)
	for _, arch := range []string{"arm64", "amd64"} {
		programs[arch] = filepath.Join(t.TempDir(), arch)
		if err := os.WriteFile(programs[arch], []byte("program for "+arch), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return programs
}

func TestArchive(t *testing.T) {
	index := readArchive(t, write(t, fakes(t), filepath.Join(harness.Root(t), "LICENSE")))
	manifest, err := index.IndexManifest()
	if err != nil || len(manifest.Manifests) != 2 {
		t.Fatalf("%v: %v", err, manifest)
	}
	for i, arch := range []string{"amd64", "arm64"} {
		descriptor := manifest.Manifests[i]
		if got := descriptor.Platform.String(); got != "linux/"+arch {
			t.Errorf("platform %d is %s", i, got)
		}
		one, err := index.Image(descriptor.Digest)
		if err != nil {
			t.Fatal(err)
		}
		if err := validate.Image(one); err != nil {
			t.Error(err)
		}
		cfg, err := one.ConfigFile()
		if err != nil || cfg.Architecture != arch || cfg.Config.Labels["org.opencontainers.image.version"] != "1.2.3" {
			t.Errorf("%s: %v: %+v", arch, err, cfg)
		}
		files := readFiles(t, mutate.Extract(one))
		if got := string(files["usr/bin/tracing"].content); got != "program for "+arch {
			t.Errorf("%s: program is %q", arch, got)
		}
		if len(files["usr/share/doc/tracing/LICENSE"].content) == 0 {
			t.Errorf("%s: no license", arch)
		}
	}
}

func TestWriteIsReproducible(t *testing.T) {
	first, err := os.ReadFile(write(t, fakes(t)))
	if err != nil {
		t.Fatal(err)
	}
	second, err := os.ReadFile(write(t, fakes(t)))
	if err != nil || !bytes.Equal(first, second) {
		t.Errorf("two archives of the same programs differ: %v", err)
	}
}

func TestErrors(t *testing.T) {
	f := func(want string, programs map[string]string) {
		t.Helper()
		dir := t.TempDir()
		o := image.Options{Dir: harness.Root(t), Programs: programs, Out: filepath.Join(dir, "x.tar")}
		if err := image.Write(t.Context(), o); err == nil || !bytes.Contains([]byte(err.Error()), []byte(want)) {
			t.Errorf("got %v, want %s", err, want)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("files are left: %v %v", left, err)
		}
	}
	f("no program given", nil)
	f("usr/bin/tracing of the image: open ", map[string]string{"amd64": filepath.Join(t.TempDir(), "none")})
}

// readArchive returns the index of the images in an archive.
func readArchive(t *testing.T, archive string) v1.ImageIndex {
	t.Helper()
	dir := t.TempDir()
	file, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close() //nolint:errcheck // read only
	for name, f := range readFiles(t, file) {
		path := filepath.Join(dir, name)
		if f.header.Typeflag == tar.TypeDir {
			err = os.MkdirAll(path, 0o700)
		} else if err = os.MkdirAll(filepath.Dir(path), 0o700); err == nil {
			err = os.WriteFile(path, f.content, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	outer, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := outer.IndexManifest()
	if err != nil || len(manifest.Manifests) != 1 || manifest.Manifests[0].Annotations["org.opencontainers.image.ref.name"] != "1.2.3" {
		t.Fatalf("%v: %+v", err, manifest)
	}
	index, err := outer.ImageIndex(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	return index
}

// file is an entry of an archive.
type file struct {
	header  *tar.Header
	content []byte
}

// readFiles returns the files of a tar archive by name.
func readFiles(t *testing.T, r io.Reader) map[string]file {
	t.Helper()
	files := make(map[string]file)
	for archive := tar.NewReader(r); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		files[header.Name] = file{header, content}
	}
}
