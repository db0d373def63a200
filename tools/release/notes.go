package main

import (
	"fmt"
	"strings"
)

// unreleased is the heading of the changes that are in no release yet.
const unreleased = "Unreleased"

// releaseNotes returns the section of a changelog about a version, without its heading. Versions
// before a release, such as 1.2.0-rc.1, have the section of unreleased changes.
func releaseNotes(changelog, version string) (string, error) {
	heading := version
	if strings.Contains(version, "-") {
		heading = unreleased
	}
	_, after, found := strings.Cut("\n"+changelog, "\n## "+heading+"\n")
	if !found { // the heading of a release may have its date
		_, after, found = strings.Cut("\n"+changelog, "\n## "+heading+" ")
		_, after, _ = strings.Cut(after, "\n")
	}
	section, _, _ := strings.Cut(after, "\n## ")
	if section = strings.TrimSpace(section); !found || section == "" {
		return "", fmt.Errorf("CHANGELOG.md: no section %q, or without text; add it", "## "+heading)
	}
	return section + "\n", nil
}
