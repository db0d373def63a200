package traces

import (
	"io"
	"os"

	"golang.org/x/term"
)

const (
	defaultWidth = 80 // columns, if the output is not a terminal
	minWidth     = 40 // on narrower terminals, lines wrap
	maxWidth     = 400
)

// screen describes the output.
type screen struct {
	width    int  // columns
	terminal bool // longer lines would wrap
	color    bool
}

// screenOf returns the properties of an output. Colors are used on terminals, unless NO_COLOR is
// set.
func screenOf(w io.Writer, getenv func(string) string) screen {
	s := screen{width: defaultWidth}
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return s
	}
	s.terminal = true
	s.color = getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"
	if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
		s.width = min(max(width, minWidth), maxWidth)
	}
	return s
}

// Parameters of the escape sequence for text attributes.
const (
	bold    = "1"
	dim     = "2"
	red     = "1;31"
	yellow  = "33"
	palette = 6 // colors of services: cyan, green, blue, magenta, and the bright forms of the first two
)

// paint returns text with a color, if the screen supports it.
func (s screen) paint(color, text string) string {
	if !s.color || text == "" {
		return text
	}
	return "\x1b[" + color + "m" + text + "\x1b[0m"
}

// serviceColor returns the color of the nth service.
func serviceColor(n int) string {
	return [palette]string{"36", "32", "34", "35", "96", "92"}[n%palette]
}
