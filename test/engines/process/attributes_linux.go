package process

import "syscall"

// endsWithParent returns attributes of a process that is killed when its parent ends, and that
// signals of the terminal do not reach.
func endsWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
