// Package chart packages the Helm chart of the program. Its tests render the chart, and run what it
// describes.
package chart

import (
	"fmt"
	"path/filepath"
	"time"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"sigs.k8s.io/yaml"

	"github.com/tracing-backend/tracing/tools/internal/archive"
)

// Options say what to package.
type Options struct {
	Dir     string    // folder of the repository
	Version string    // version of the chart and of the image that it installs by default
	Time    time.Time // time of the files in the archive
	Out     string    // folder of the archive, which exists
}

// Package writes the chart into an archive as `helm package` does, and returns its path. The bytes
// of the archive depend only on the files of the chart and on the options.
func Package(o Options) (path string, err error) {
	c, err := loader.LoadDir(filepath.Join(o.Dir, "deploy", "helm", "tracing"))
	if err != nil {
		return "", err
	}
	c.Metadata.Version, c.Metadata.AppVersion = o.Version, o.Version
	if err := c.Validate(); err != nil {
		return "", fmt.Errorf("chart %s: %w", c.Name(), err)
	}
	files, err := contents(c)
	if err != nil {
		return "", err
	}
	path = filepath.Join(o.Out, c.Name()+"-"+o.Version+".tgz")
	return path, archive.Write(path, c.Name(), o.Time, files)
}

// contents returns the files of a chart, with its metadata in place of the metadata in its folder.
func contents(c *chart.Chart) (files []archive.File, err error) {
	for _, f := range c.Raw {
		content := f.Data
		if f.Name == chartutil.ChartfileName {
			if content, err = yaml.Marshal(c.Metadata); err != nil {
				return nil, err
			}
		}
		files = append(files, archive.File{Name: f.Name, Content: content, Mode: 0o644})
	}
	return files, nil
}
