package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// useProcess selects the configuration of the running process pid, from its command line. Both
// processes must have the same environment and working directory, as in a container.
func (c *command) useProcess(pid int) error {
	if c.load.Preset != "" || len(c.load.Files) > 0 || c.endpoint != "" {
		return errors.New("--pid cannot be combined with PRESET, --config or --endpoint")
	}
	args, err := argsOfProcess(pid)
	if err != nil {
		return err
	}
	operands, err := c.parseFlags(args, c.subcommands()[0].flags)
	if err != nil {
		return fmt.Errorf("process %d: command line: %w", pid, err)
	}
	if len(operands) > 0 {
		c.load.Preset = operands[0]
	}
	return nil
}

// argsOfProcess returns the arguments with which a process runs this program, directly or through
// another program, such as an init program, whose arguments contain the command line.
func argsOfProcess(pid int) ([]string, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return nil, fmt.Errorf("process %d: cannot read its command line, which needs Linux and the same user: %w", pid, err)
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	words := strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00")
	i := slices.IndexFunc(words, func(w string) bool { return filepath.Base(w) == filepath.Base(self) })
	if i < 0 {
		return nil, fmt.Errorf("process %d is %q, not %s; give --endpoint host:port", pid, words[0], filepath.Base(self))
	}
	return words[i+1:], nil
}
