package build

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Commit is the state of the sources. The zero Commit stands for sources without a repository.
type Commit struct {
	ID   string    // 40 hexadecimal digits, followed by "-dirty" if files differ from the commit
	Time time.Time // of the commit, in UTC; the time of all files of a release
}

// Head returns the commit of the repository in a folder. Sources from an archive have no
// repository; for them it returns the zero Commit.
func Head(ctx context.Context, dir string) (Commit, error) {
	top, err := git(ctx, dir, "rev-parse", "--show-toplevel")
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) || errors.Is(err, exec.ErrNotFound) || err == nil && !samePath(top, dir) {
		return Commit{}, nil
	}
	if err != nil {
		return Commit{}, err
	}
	id, err := git(ctx, dir, "describe", "--always", "--abbrev=40", "--dirty", "--exclude=*")
	if err != nil {
		return Commit{}, err
	}
	seconds, err := git(ctx, dir, "log", "-1", "--format=%ct")
	if err != nil {
		return Commit{}, err
	}
	n, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return Commit{}, fmt.Errorf("time of commit %s: %w", id, err)
	}
	return Commit{ID: id, Time: time.Unix(n, 0).UTC()}, nil
}

// samePath reports whether two names refer to the same folder.
func samePath(a, b string) bool {
	real := func(p string) string {
		if abs, err := filepath.Abs(p); err == nil {
			p = abs
		}
		if resolved, err := filepath.EvalSymlinks(p); err == nil {
			p = resolved
		}
		return p
	}
	return real(a) == real(b)
}

// git returns the output of a git command in a folder.
func git(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s in %s: %w", args[0], dir, err)
	}
	return strings.TrimSpace(string(out)), nil
}
