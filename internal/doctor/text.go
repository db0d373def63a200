package doctor

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// width of the column of verdicts.
const verdictWidth = len("problem")

// writeText writes the report for a terminal: a line per finding, advice on the next line.
func (r *Report) writeText(w io.Writer) error {
	var b strings.Builder
	state := "no process with this configuration is running; checked whether one can start"
	switch {
	case r.Running:
		state = "checked the running process and its host"
	case r.Hangs:
		state = "the process with this configuration does not answer; checked its host"
	}
	fmt.Fprintf(&b, "tracing %s: %s\n", r.Version, state)
	for _, c := range r.Checks {
		fmt.Fprintf(&b, "\n%s\n", c.Check)
		for _, f := range c.Findings {
			subject := f.Subject
			if subject != "" {
				subject += ": "
			}
			fmt.Fprintf(&b, "  %-*s  %s\n", verdictWidth, f.Verdict, printable(subject+f.Found))
			if f.Advice != "" {
				fmt.Fprintf(&b, "  %-*s  -> %s\n", verdictWidth, "", printable(f.Advice))
			}
		}
	}
	fmt.Fprintf(&b, "\n%s, %s, %d ok, %d skipped\n", counted(r.count(Problem), "problem"), counted(r.count(Warning), "warning"),
		r.count(OK), r.count(Skipped))
	_, err := io.WriteString(w, b.String())
	return err
}

// printable escapes line breaks and what a terminal would interpret: findings quote files, answers
// of other processes, and names that users of this host choose.
func printable(text string) string {
	var b strings.Builder
	for i, r := range text {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(text[i:], string(utf8.RuneError)):
			fmt.Fprintf(&b, `\x%02x`, text[i])
		case unicode.IsPrint(r):
			b.WriteRune(r)
		default:
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		}
	}
	return b.String()
}

// counted returns a number with a noun.
func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
