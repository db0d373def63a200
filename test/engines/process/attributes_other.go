//go:build !linux

package process

import "syscall"

// endsWithParent returns no attributes: Debian's packages run on Linux only.
func endsWithParent() *syscall.SysProcAttr { return nil }
