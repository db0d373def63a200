package doctor

import (
	"context"
	"strings"
)

// checkConfiguration repeats the warnings of the loader, and checks files and folders as `tracing
// validate` does.
func checkConfiguration(_ context.Context, x *examination) []Finding {
	var found []Finding
	for _, w := range x.config.Warnings() {
		found = append(found, newFinding("", Warning, "%s", w))
	}
	if err := x.config.CheckFiles(); err != nil {
		for line := range strings.Lines(err.Error()) {
			found = append(found, newFinding("", Problem, "%s", strings.TrimSpace(line)).
				advise("create the file or folder, or change its permissions or the key"))
		}
	}
	if len(found) == 0 {
		found = append(found, newFinding("", OK, "valid; the files and folders that it names can be used"))
	}
	return found
}
