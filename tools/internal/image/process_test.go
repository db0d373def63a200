package image_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/tracing-backend/tracing/test/harness"
)

// stop stops the program as a container engine does, and waits for its last words.
func stop(t *testing.T, p *harness.Process, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	p.Accounting()
	if code := p.Wait(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// child returns the descendant of a process that runs a program of its own root folder.
func child(t *testing.T, pid int, program string) int {
	t.Helper()
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		t.Fatal(err)
	}
	if first, _, _ := strings.Cut(string(line), "\x00"); first == program {
		return pid
	}
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		children, err := os.ReadFile(task)
		if err != nil {
			continue // the thread has ended
		}
		for word := range strings.FieldsSeq(string(children)) {
			id, err := strconv.Atoi(word)
			if err != nil {
				t.Fatal(err)
			}
			if found := child(t, id, program); found != 0 {
				return found
			}
		}
	}
	return 0
}

func checkUser(t *testing.T, pid int, user string) {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"Uid", "Gid"} {
		if want := kind + ":\t" + strings.Repeat(user+"\t", 3) + user + "\n"; !strings.Contains(string(status), want) {
			t.Errorf("the process has not %s %s:\n%s", kind, user, status)
		}
	}
}
