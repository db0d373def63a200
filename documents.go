package tracing

import (
	"embed"
	"io/fs"
)

//go:embed *.md docs config-examples/*.yaml deploy/helm/examples/*.yaml deploy/helm/tracing/values.yaml
//go:embed ui/public/favicon.svg ui/src/shell/tokens.css
var documents embed.FS

// Documents returns the files of the repository from which the query service builds its
// documentation.
func Documents() fs.FS { return documents }
