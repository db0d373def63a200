package traces

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"unicode/utf16"

	"github.com/tracing-backend/tracing/pipeline/commands"
)

// listServices prints the service names, one per line.
func (t tool) listServices(in commands.Invocation, body io.Reader) error {
	r := newReader(body, false)
	var names []string
	problems, err := r.answer("data", func() error {
		var name string
		if err := r.text(&name); err != nil {
			return err
		}
		names = append(names, name)
		return r.item()
	})
	if err != nil {
		return err
	}
	warn(in.Stderr, problems)
	if len(names) == 0 {
		fmt.Fprintln(in.Stderr, "no services found")
	}
	slices.Sort(names)
	w := bufio.NewWriter(in.Stdout)
	for _, name := range names {
		fmt.Fprintln(w, clean(name))
	}
	return output(w.Flush())
}

// listOperations prints a table of operations and span kinds.
func (t tool) listOperations(in commands.Invocation, body io.Reader) error {
	r := newReader(body, false)
	var rows [][]string
	problems, err := r.answer("data", func() error {
		var op struct {
			Name string `json:"name"`
			Kind string `json:"spanKind"`
		}
		if err := r.dec.Decode(&op); err != nil {
			return err
		}
		rows = append(rows, []string{clean(op.Kind), clean(op.Name)})
		return r.item()
	})
	if err != nil {
		return err
	}
	warn(in.Stderr, problems)
	if len(rows) == 0 {
		fmt.Fprintf(in.Stderr, "service %s has no operations\n", clean(in.Args[0]))
		return nil
	}
	slices.SortFunc(rows, func(a, b []string) int { return slices.Compare([]string{a[1], a[0]}, []string{b[1], b[0]}) })
	columns := []column{{head: "KIND"}, {head: "OPERATION"}}
	return output(writeTable(in.Stdout, screenOf(in.Stdout, t.getenv), columns, rows))
}

// copyPrintable copies JSON and escapes characters that are not printable. In JSON, these occur
// only in strings.
func copyPrintable(w *bufio.Writer, body io.Reader) error {
	in := bufio.NewReader(body)
	for {
		r, size, err := in.ReadRune()
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		case size == 1 && r > 0x7f: // invalid UTF-8
			_, err = w.WriteString(`\ufffd`)
		case isPrintable(r) || isJSONSpace(r):
			_, err = w.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			_, err = fmt.Fprintf(w, `\u%04x\u%04x`, high, low)
		default:
			_, err = fmt.Fprintf(w, `\u%04x`, r)
		}
		if err != nil {
			return err
		}
	}
}
