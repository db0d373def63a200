package tracecli

import (
	"io"
	"os"

	"golang.org/x/term"
)

const (
	defaultWidth = 80 // columns, where there is no terminal
	minWidth     = 40 // below which lines are broken by the terminal
	maxWidth     = 400
)

// screen is where the output goes.
type screen struct {
	width    int  // columns
	terminal bool // lines that are longer would be broken
	colour   bool
}

// screenOf looks at the output and at the environment: colours are for terminals, and for those who do not set NO_COLOR.
func screenOf(w io.Writer, getenv func(string) string) screen {
	s := screen{width: defaultWidth}
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return s
	}
	s.terminal = true
	s.colour = getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"
	if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
		s.width = min(max(width, minWidth), maxWidth)
	}
	return s
}

// Parameters of the escape sequence that sets how characters look.
const (
	bold    = "1"
	dim     = "2"
	red     = "1;31"
	yellow  = "33"
	palette = 6 // colours of services: cyan, green, blue, magenta, and the bright forms of the first two
)

// paint returns text in a colour, where there are colours.
func (s screen) paint(colour, text string) string {
	if !s.colour || text == "" {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

// serviceColour returns the colour of the nth service.
func serviceColour(n int) string {
	return [palette]string{"36", "32", "34", "35", "96", "92"}[n%palette]
}
