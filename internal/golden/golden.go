// Package golden compares the output of a test with a file, and rewrites the file with the flag
// -update:
//
//	go test ./receivers/otlp -run TestAnswers -update
//
// Only tests import this package: importing it adds the flag to the program.
package golden

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"unicode/utf8"
)

var update = flag.Bool("update", false, "rewrite the golden files of the tests that run")

// Updating reports whether the tests run with -update. It is for tests that cannot use [Check].
func Updating() bool { return *update }

// Check fails the test if got differs from the content of the file, and returns that content. With
// -update it writes got to the file instead, and creates the file and its folder if they do not
// exist.
func Check[T string | []byte](tb testing.TB, file string, got T) (want T) {
	tb.Helper()
	if *update {
		Write(tb, file, got)
		return got
	}
	content, err := os.ReadFile(file)
	if err != nil {
		tb.Fatalf("%v; run the test with -update to create the file", err)
	}
	if string(got) != string(content) {
		tb.Errorf("output differs from %s; run the test with -update to accept it\n%s", file, difference(string(got), string(content)))
	}
	return T(content)
}

// difference describes how got differs from want: with both texts, or with the first byte that
// differs if one is not text.
func difference(got, want string) string {
	if utf8.ValidString(got) && utf8.ValidString(want) {
		return fmt.Sprintf("got\n%s\nwant\n%s", got, want)
	}
	i := 0
	for i < min(len(got), len(want)) && got[i] == want[i] {
		i++
	}
	return fmt.Sprintf("got %d bytes, want %d; the first difference is at byte %d", len(got), len(want), i)
}

// Write writes content to the file, and creates its folder if it does not exist.
func Write[T string | []byte](tb testing.TB, file string, content T) {
	tb.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		tb.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
		tb.Fatal(err)
	}
}
