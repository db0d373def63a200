package harness

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
)

// peakMemory returns VmHWM in MiB.
func (p *Process) PeakMemory() int {
	p.T.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Cmd.Process.Pid))
	if err != nil {
		p.T.Fatal(err)
	}
	m := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(b)
	kb, err := strconv.Atoi(string(m[1]))
	if err != nil {
		p.T.Fatal(err)
	}
	return kb >> 10
}

// forgetPeak makes peakMemory begin anew, and returns what is in use now, in MiB.
func (p *Process) ResetPeakMemory() int {
	p.T.Helper()
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", p.Cmd.Process.Pid), []byte("5"), 0o600); err != nil {
		p.T.Fatal(err)
	}
	return p.PeakMemory()
}
