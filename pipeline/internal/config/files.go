package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"syscall"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/commands"
	"github.com/tracing-backend/tracing/pipeline/internal/config/yamltree"
)

// Values of the struct tag `path`, which marks strings that name files. An empty string names no
// file.
const (
	pathFile      = "file"        // a file that is read
	pathFileOrURL = "file-or-url" // also, unless it is a URL
	pathFolder    = "folder"      // a folder that is read
	pathData      = "data"        // a folder that is written to, and created if necessary
)

var errNotFolder = errors.New("not a folder")

// CheckFiles checks the files and folders that are named in the service section and by all used
// components, without changing them. The error lists all problems, one per line, like the error of
// Load.
func (c *Config) CheckFiles() error {
	var problems yamltree.Problems
	check := func(at []string, v reflect.Value, tag reflect.StructTag) {
		kind := tag.Get("path")
		if kind == "" || v.Kind() != reflect.String || v.String() == "" {
			return
		}
		if err := checkPath(kind, v.String()); err != nil {
			problems = append(problems, yamltree.Problem{Pos: valuePos(c.tree, at), Path: yamltree.Display(at...), Msg: err.Error()})
		}
	}
	walkFields(reflect.ValueOf(&c.Service).Elem(), []string{"service"}, "", check)
	used := c.Used()
	for _, m := range c.Sorted() {
		if used[m] {
			walkFields(reflect.ValueOf(m.Value).Elem(), []string{m.Key.Kind.Section(), m.Key.ID.String()}, "", check)
		}
	}
	if len(problems) == 0 {
		return nil
	}
	c.tree.Redact(problems)
	problems.Sort()
	return problems
}

// checkPath returns what is wrong with the file or folder that a value names.
func checkPath(kind, name string) error {
	switch kind {
	case pathFileOrURL:
		if strings.HasPrefix(name, "http://") || strings.HasPrefix(name, "https://") {
			return nil
		}
		return checkFile(name)
	case pathFile:
		return checkFile(name)
	case pathFolder:
		return checkFolder(name)
	case pathData:
		if err := checkWritable(name); err != nil {
			return fmt.Errorf("%w; %s", err, FolderAdvice(name, err))
		}
		return nil
	}
	return fmt.Errorf("BUG: unknown value %q of the tag path", kind)
}

// checkFolder opens a folder.
func checkFolder(name string) error {
	info, err := os.Stat(name)
	if err == nil && !info.IsDir() {
		return fmt.Errorf("%s is not a folder", name)
	}
	if err == nil {
		_, err = os.ReadDir(name)
	}
	if err != nil {
		return cause("cannot read", name, err)
	}
	return nil
}

// checkFile opens a file.
func checkFile(name string) error {
	err := pipeline.CheckReadable(name)
	var p *fs.PathError
	if errors.As(err, &p) {
		return cause("cannot read", name, err)
	}
	return err
}

// checkWritable creates and deletes a file in a folder or, if it does not exist, in the folder
// where it would be created.
func checkWritable(name string) error {
	existing, err := filepath.Abs(name)
	if err != nil {
		return cause("cannot use", name, err)
	}
	info, err := os.Stat(existing)
	for errors.Is(err, fs.ErrNotExist) && filepath.Dir(existing) != existing {
		existing = filepath.Dir(existing)
		info, err = os.Stat(existing)
	}
	switch {
	case err != nil:
		return cause("cannot use", name, err)
	case !info.IsDir():
		return fmt.Errorf("cannot use %s: %w: %s", name, errNotFolder, existing)
	}
	f, err := os.CreateTemp(existing, ".validate-*")
	if err != nil {
		return cause("cannot write to", name, err)
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// cause returns the reason in err, without its operation and path.
func cause(what, name string, err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		err = p.Err
	}
	return fmt.Errorf("%s %s: %w", what, name, err)
}

// FolderAdvice says where a data folder is, which user the process runs as, and what to do about a
// file system error in the folder.
func FolderAdvice(name string, err error) string {
	if abs, absErr := filepath.Abs(name); absErr == nil {
		name = abs
	}
	elsewhere := "configure another folder (--data-dir, " + commands.VarDataDir + " or service.data_dir)"
	action := elsewhere
	switch {
	case errors.Is(err, fs.ErrPermission):
		action = fmt.Sprintf("make the folder writable for this user (chown -R %d), or %s", os.Geteuid(), elsewhere)
	case errors.Is(err, syscall.EROFS):
		action = "mount a writable file system there, or " + elsewhere
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		action = "free space on its disk, or " + elsewhere
	case errors.Is(err, syscall.ENOTDIR), errors.Is(err, errNotFolder):
		action = "remove the file that is in the way, or " + elsewhere
	}
	return fmt.Sprintf("folder %s, user %s: %s", name, currentUser(), action)
}

// currentUser returns the name and the id of the user of the process.
func currentUser() string {
	id := strconv.Itoa(os.Geteuid())
	if u, err := user.LookupId(id); err == nil {
		return fmt.Sprintf("%s (uid %s)", u.Username, id)
	}
	return "with uid " + id
}
