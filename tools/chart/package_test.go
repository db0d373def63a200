package chart_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	helm "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"

	"github.com/tracing-backend/tracing/tools/chart"
)

// A packaged chart is the chart with another version, and packaging it again gives the same bytes.
func TestPackage(t *testing.T) {
	var archives [][]byte
	for range 2 {
		options := chart.Options{Dir: "../..", Version: "1.2.3", Time: time.Unix(1_700_000_000, 0), Out: t.TempDir()}
		path, err := chart.Package(options)
		if err != nil {
			t.Fatal(err)
		}
		if got := filepath.Base(path); got != "tracing-1.2.3.tgz" {
			t.Errorf("name %s", got)
		}
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		archives = append(archives, content)
	}
	if !bytes.Equal(archives[0], archives[1]) {
		t.Error("two archives differ")
	}
	packaged, err := loader.LoadArchive(bytes.NewReader(archives[0]))
	if err != nil {
		t.Fatal(err)
	}
	if m := packaged.Metadata; m.Version != "1.2.3" || m.AppVersion != "1.2.3" {
		t.Errorf("version %s of the program %s", m.Version, m.AppVersion)
	}
	source, err := loader.LoadDir(chartFolder)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range source.Templates {
		same := func(p *helm.File) bool { return p.Name == f.Name && bytes.Equal(p.Data, f.Data) }
		if !slices.ContainsFunc(packaged.Templates, same) {
			t.Errorf("%s is not in the archive", f.Name)
		}
	}
	if !bytes.Equal(packaged.Schema, source.Schema) || len(packaged.Templates) != len(source.Templates) {
		t.Errorf("%d templates, want %d", len(packaged.Templates), len(source.Templates))
	}
	if len(packaged.Files) != len(source.Files) {
		t.Errorf("%d other files, want %d", len(packaged.Files), len(source.Files))
	}
}

// A version that charts cannot have is an error.
func TestPackageWithWrongVersion(t *testing.T) {
	if path, err := chart.Package(chart.Options{Dir: "../..", Version: "latest", Out: t.TempDir()}); err == nil {
		t.Errorf("packaged as %s", path)
	}
}
