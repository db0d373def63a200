package harness

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
)

// PeakMemory returns the peak resident memory of the process in MiB, without the pages of the
// program file, which the soft memory limit does not count either. It reads /proc, which Linux has.
func (p *Process) PeakMemory() int {
	p.T.Helper()
	return (p.memory("VmHWM") - p.memory("RssFile")) >> 10
}

// memory returns a line of /proc/PID/status in KiB.
func (p *Process) memory(line string) int {
	p.T.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Cmd.Process.Pid))
	if err != nil {
		p.T.Fatal(err)
	}
	m := regexp.MustCompile(line + `:\s+(\d+) kB`).FindSubmatch(b)
	if m == nil {
		p.T.Fatalf("no %s in\n%s", line, b)
	}
	kb, err := strconv.Atoi(string(m[1]))
	if err != nil {
		p.T.Fatal(err)
	}
	return kb
}

// ResetPeakMemory resets the peak that [Process.PeakMemory] returns, and returns the resident
// memory in MiB.
func (p *Process) ResetPeakMemory() int {
	p.T.Helper()
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", p.Cmd.Process.Pid), []byte("5"), 0o600); err != nil {
		p.T.Fatal(err)
	}
	return p.PeakMemory()
}
