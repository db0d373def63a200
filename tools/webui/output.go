package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"
)

// Maximum size of compressed JavaScript and CSS in bytes: of what a page needs at its start, and of
// everything. Fonts, and the texts of each other language, have a maximum of their own.
const (
	maxStart = 80 << 10
	maxTotal = 290 << 10
	maxFonts = 40 << 10
	maxTexts = 40 << 10
)

const indexName = "index.html"

// compress compresses files, without times. The gzip of the standard library makes them larger.
func compress(files map[string]string) (map[string][]byte, error) {
	compressed := map[string][]byte{}
	for name, text := range files {
		var b bytes.Buffer
		w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
		if err == nil {
			_, err = w.Write([]byte(text))
		}
		if err == nil {
			err = w.Close()
		}
		if err != nil {
			return nil, err
		}
		compressed[name+".gz"] = b.Bytes()
	}
	return compressed, nil
}

// check prints the sizes, and returns an error if some are above their maximum.
func check(files map[string][]byte, pages map[string][]string) error {
	type line struct {
		name      string
		size, max int
	}
	var lines []line
	for name, needed := range pages {
		l := line{name: name, max: maxStart}
		for _, f := range needed {
			l.size += len(files[f+".gz"])
		}
		lines = append(lines, l)
	}
	slices.SortFunc(lines, func(a, b line) int { return cmp.Or(b.size-a.size, strings.Compare(a.name, b.name)) })
	total, fonts := line{name: "total", max: maxTotal}, line{name: "fonts", max: maxFonts}
	for _, name := range sorted(files) {
		content := files[name]
		switch path.Ext(strings.TrimSuffix(name, ".gz")) {
		case ".js", ".css":
			total.size += len(content)
		case fontExt:
			fonts.size += len(content)
		case textExt:
			language, _, _ := strings.Cut(path.Base(name), "-")
			lines = append(lines, line{"texts " + language, len(content), maxTexts})
		}
	}
	var large []string
	for _, l := range append(lines, total, fonts) {
		fmt.Printf("%-10s %6.1f of %d KiB\n", l.name, float64(l.size)/1024, l.max>>10)
		if l.size > l.max {
			large = append(large, l.name)
		}
	}
	if len(large) > 0 {
		return errors.New("size of the web UI exceeds the budget: " + strings.Join(large, ", "))
	}
	return nil
}

// replace writes files into a folder, the page after those that it loads, and removes other files.
// It leaves files that have not changed alone, because another build may read them.
func replace(folder string, files map[string][]byte) error {
	const page = indexName + ".gz"
	names := append(slices.DeleteFunc(sorted(files), func(name string) bool { return name == page }), page)
	for _, name := range names {
		file := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			return err
		}
		if old, err := os.ReadFile(file); err == nil && bytes.Equal(old, files[name]) {
			continue
		}
		if err := os.WriteFile(file, files[name], 0o666); err != nil {
			return err
		}
	}
	err := fs.WalkDir(os.DirFS(folder), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || files[name] != nil || name == ".gitkeep" {
			return err
		}
		return os.Remove(filepath.Join(folder, name))
	})
	if err != nil {
		return err
	}
	now := time.Now()
	return os.Chtimes(filepath.Join(folder, page), now, now) // ui/build/run compares it with the sources
}
