package doctor

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Verdict is the result of a check or of one of its findings. Larger verdicts are worse.
type Verdict int

// Verdicts.
const (
	Skipped Verdict = iota // nothing was checked; the finding says why
	OK
	Warning // works now, but may fail or be slow later
	Problem // does not work, or spans can be lost
)

// String returns the word in texts and JSON.
func (v Verdict) String() string { return [...]string{"skipped", "ok", "warning", "problem"}[v] }

// MarshalText returns String.
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// Finding is what a check says about one subject.
type Finding struct {
	Subject string  `json:"subject"` // listener, folder, connection; "" if the check has only one
	Verdict Verdict `json:"verdict"`
	Found   string  `json:"found"`            // what was found, or why nothing was checked
	Advice  string  `json:"advice,omitempty"` // what to do; "" if there is nothing to do
}

// newFinding returns a finding without advice.
func newFinding(subject string, v Verdict, format string, args ...any) Finding {
	return Finding{Subject: subject, Verdict: v, Found: fmt.Sprintf(format, args...)}
}

// advise returns a copy of f with advice.
func (f Finding) advise(format string, args ...any) Finding {
	f.Advice = fmt.Sprintf(format, args...)
	return f
}

// Result is the result of a check.
type Result struct {
	Check    string    `json:"check"`
	Verdict  Verdict   `json:"verdict"` // the worst of the findings
	Findings []Finding `json:"findings"`
}

// Report is the result of the command.
type Report struct {
	Version string   `json:"version"`         // of this program
	Running bool     `json:"running"`         // whether a process with this configuration runs and responds
	Hangs   bool     `json:"hangs,omitempty"` // whether one runs and does not respond
	Verdict Verdict  `json:"verdict"`         // the worst of the checks
	Checks  []Result `json:"checks"`
}

func newResult(check string, findings []Finding) Result {
	r := Result{Check: check, Findings: findings}
	for _, f := range findings {
		r.Verdict = max(r.Verdict, f.Verdict)
	}
	return r
}

// count returns the number of findings with a verdict.
func (r *Report) count(v Verdict) (n int) {
	for _, c := range r.Checks {
		for _, f := range c.Findings {
			if f.Verdict == v {
				n++
			}
		}
	}
	return n
}

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
		state = "the process with this configuration does not respond; checked its host"
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

// printable escapes line breaks and characters that a terminal would interpret: findings quote
// files, responses of other processes, and names that users of this host choose.
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
