package idl

import (
	"fmt"
	"strconv"
	"text/scanner"
)

// maxID is the greatest number of a field, so that a set of fields fits into 64 bits.
const maxID = 63

// Parse parses a file. name is what errors call it; they name the line too.
func Parse(name, src string) (f *File, err error) {
	tokens, err := lex(name, src)
	if err != nil {
		return nil, err
	}
	p := &parser{tokens: tokens}
	defer func() {
		switch e := recover().(type) {
		case nil:
		case syntaxError:
			f, err = nil, e
		default:
			panic(e)
		}
	}()
	return p.file(), nil
}

// syntaxError travels as a panic from where it is found to Parse.
type syntaxError struct{ error }

type parser struct{ tokens []token }

func (p *parser) peek() token { return p.tokens[0] }

func (p *parser) next() token {
	t := p.tokens[0]
	if len(p.tokens) > 1 {
		p.tokens = p.tokens[1:]
	}
	return t
}

func (p *parser) fail(t token, want string) {
	panic(syntaxError{fmt.Errorf("%s: %s where %s was expected", t.at, t, want)})
}

func (p *parser) expect(kind rune) token {
	t := p.next()
	if t.kind != kind {
		p.fail(t, scanner.TokenString(kind))
	}
	return t
}

func (p *parser) name() string { return p.expect(scanner.Ident).text }

// accept takes the next token if it is text.
func (p *parser) accept(text string) bool {
	if p.peek().text != text || p.peek().kind == scanner.String {
		return false
	}
	p.next()
	return true
}

func (p *parser) number(bits int) int64 {
	t := p.expect(scanner.Int)
	n, err := strconv.ParseInt(t.text, 0, bits)
	if err != nil {
		p.fail(t, fmt.Sprintf("a number of %d bits", bits))
	}
	return n
}

// block calls member until the closing bracket. Members may be separated by commas or semicolons.
func (p *parser) block(open, end rune, member func(doc []string)) {
	p.expect(open)
	for p.peek().kind != end {
		member(p.peek().doc)
		_ = p.accept(",") || p.accept(";")
	}
	p.next()
}

func (p *parser) file() *File {
	f := &File{Namespaces: map[string]string{}, Doc: p.peek().doc}
	for {
		t := p.next()
		switch {
		case t.kind == scanner.EOF:
			return f
		case t.kind != scanner.Ident:
			p.fail(t, "a declaration")
		}
		switch t.text {
		case "namespace":
			language := p.name()
			f.Namespaces[language] = p.name()
		case "include":
			f.Includes = append(f.Includes, p.expect(scanner.String).text)
		case "const":
			f.Consts = append(f.Consts, p.constant(t.doc))
		case "enum":
			f.Enums = append(f.Enums, p.enum(t.doc))
		case "struct":
			f.Structs = append(f.Structs, p.structure(t.doc))
		case "service":
			f.Services = append(f.Services, p.service(t.doc))
		default:
			p.fail(t, "a declaration")
		}
	}
}

func (p *parser) constant(doc []string) Const {
	if t := p.next(); t.text != "string" {
		p.fail(t, "string")
	}
	c := Const{Doc: doc, Name: p.name()}
	p.expect('=')
	c.Value = p.expect(scanner.String).text
	return c
}

func (p *parser) enum(doc []string) Enum {
	e := Enum{Doc: doc, Name: p.name()}
	p.block('{', '}', func(doc []string) {
		v := EnumValue{Doc: doc, Name: p.name()}
		p.expect('=')
		v.Number = int32(p.number(32))
		e.Values = append(e.Values, v)
	})
	return e
}

func (p *parser) structure(doc []string) Struct {
	return Struct{Doc: doc, Name: p.name(), Fields: p.fields('{', '}')}
}

func (p *parser) fields(open, end rune) (fields []Field) {
	ids := map[int16]bool{}
	p.block(open, end, func(doc []string) {
		at := p.peek()
		f := p.field(doc)
		if f.ID < 1 || f.ID > maxID || ids[f.ID] {
			p.fail(at, fmt.Sprintf("a number of its own from 1 to %d", maxID))
		}
		ids[f.ID] = true
		fields = append(fields, f)
	})
	return fields
}

func (p *parser) field(doc []string) Field {
	f := Field{Doc: doc, ID: int16(p.number(16))}
	p.expect(':')
	switch {
	case p.accept("required"):
		f.Requiredness = Required
	case p.accept("optional"):
		f.Requiredness = Optional
	}
	f.Type = p.typ()
	f.Name = p.name()
	if f.HasDefault = p.accept("="); f.HasDefault && !p.accept("false") && !p.accept("0") {
		p.fail(p.peek(), "false or 0")
	}
	return f
}

func (p *parser) typ() Type {
	name := p.name()
	if name != "list" {
		return Type{Name: name}
	}
	p.expect('<')
	t := Type{Name: p.name(), List: true}
	p.expect('>')
	return t
}

func (p *parser) service(doc []string) Service {
	s := Service{Doc: doc, Name: p.name()}
	p.block('{', '}', func(doc []string) {
		m := Method{Doc: doc, Oneway: p.accept("oneway"), Result: p.typ()}
		m.Name = p.name()
		m.Args = Struct{Name: m.Name, Fields: p.fields('(', ')')}
		s.Methods = append(s.Methods, m)
	})
	return s
}
