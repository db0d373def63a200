package process

import (
	"cmp"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// CPU returns the CPU time that a process has used. It reads /proc.
func CPU(pid int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	const user, system, tick = 11, 12, 10 * time.Millisecond // indexes of fields after the name; unit of Linux
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	u, err1 := strconv.Atoi(fields[user])
	s, err2 := strconv.Atoi(fields[system])
	return time.Duration(u+s) * tick, cmp.Or(err1, err2)
}

// Memory is the resident memory of a process in bytes.
type Memory struct{ Now, Peak int64 }

// ReadMemory returns the resident memory of a process. It reads /proc.
func ReadMemory(pid int) (m Memory, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return Memory{}, err
	}
	for name, bytes := range map[string]*int64{"VmRSS:": &m.Now, "VmHWM:": &m.Peak} {
		_, after, _ := strings.Cut(string(text), name)
		if _, err := fmt.Sscan(after, bytes); err != nil {
			return Memory{}, fmt.Errorf("%s %w", name, err)
		}
		*bytes <<= 10
	}
	return m, nil
}
