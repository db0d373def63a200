package doctor

import (
	"context"

	"github.com/tracing-backend/tracing/exporters/disk"
)

// checkVersions compares this program with the running process and with stored files.
func checkVersions(_ context.Context, x *examination) []Finding {
	found := []Finding{x.programVersion()}
	for _, c := range x.used {
		if _, ok := c.Value.(*disk.Config); ok {
			folder := x.storeFolder(c)
			found = append(found, x.formatOf(key(c)+" ("+folder+")", folder))
		}
	}
	return found
}

func (x *examination) programVersion() Finding {
	const subject = "program"
	switch {
	case !x.process.running || x.process.version == "":
		return newFinding(subject, OK, "this is version %s", x.build.Version)
	case x.process.version != x.build.Version:
		return newFinding(subject, Warning, "%s has version %s, this is %s", x.process, x.process.version, x.build.Version).
			advise("restart the process if it should run this version; otherwise run the command of its version")
	}
	return newFinding(subject, OK, "%s and this command have version %s", x.process, x.build.Version)
}

func (x *examination) formatOf(subject, folder string) Finding {
	exists, err := disk.CheckFormat(x.env.FS, folder)
	switch {
	case err != nil:
		return newFinding(subject, Problem, "%v", err).advise("see docs/upgrading.md")
	case !exists:
		return newFinding(subject, OK, "no store yet; this program creates one of format %d", disk.Format)
	}
	return newFinding(subject, OK, "this program reads the format of the store")
}
