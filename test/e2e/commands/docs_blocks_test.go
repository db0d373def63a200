package commands_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/text"

	"github.com/tracing-backend/tracing/test/harness"
)

// docBlock is a code block of the documentation, or a comment before one.
//
// Comments in HTML say what the tests do with the block that follows:
//
//	not run: REASON          a shell block that is not executed
//	not validated: REASON    a YAML block that is not a configuration of the program
//	preset: NAME             preset that a YAML block is merged over, instead of all-in-one
//	file: NAME               file to which the block is written, for shell blocks after it
//	in the background: PORT  the command does not end; it is ready when this admin port (14269) is
//	setup: COMMANDS          commands before the next shell block that readers do not see
type docBlock struct {
	page     string // path in the repository
	line     int
	language string // "" if it is not stated
	text     string
	comments []docComment
}

// docComment is one of the comments before a block.
type docComment struct{ key, value string }

var docCommentPattern = regexp.MustCompile(`(?s)<!-- (not run|not validated|preset|file|in the background|setup)(?::\s(.*?))?\s-->`)

// comment returns the value of a comment before the block.
func (b *docBlock) comment(key string) (value string, present bool) {
	for _, c := range b.comments {
		if c.key == key {
			value, present = c.value, true
		}
	}
	return value, present
}

// shellCommand matches the first line of blocks that are commands, although no language is stated.
var shellCommand = regexp.MustCompile(`^(\$ |(export |[A-Z_]+=\S+ )*(bin/)?(` +
	`tracing|curl|make|docker|kubectl|helm|kill|go|dlv|dpkg|rpm|systemctl|journalctl|npm|git|python|java|node) )`)

func (b *docBlock) isShell() bool {
	return slices.Contains([]string{"sh", "bash", "console"}, b.language) || b.language == "" && shellCommand.MatchString(b.text)
}

func (b *docBlock) isYAML() bool { return b.language == "yaml" }

// docBlocks returns the code blocks of all documents, page by page.
func docBlocks(t *testing.T) map[string][]*docBlock {
	t.Helper()
	root := harness.Root(t)
	pages, err := filepath.Glob(filepath.Join(root, "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(filepath.Join(root, "docs"), func(name string, _ fs.DirEntry, err error) error {
		if filepath.Ext(name) == ".md" {
			pages = append(pages, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	blocks := map[string][]*docBlock{}
	for _, file := range pages {
		markdown, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		page, err := filepath.Rel(root, file)
		if err != nil {
			t.Fatal(err)
		}
		blocks[page] = pageBlocks(filepath.ToSlash(page), markdown)
	}
	if len(blocks) < 50 {
		t.Fatalf("only %d documents found", len(blocks))
	}
	return blocks
}

func pageBlocks(page string, markdown []byte) []*docBlock {
	var blocks []*docBlock
	var comments []docComment
	tree := goldmark.DefaultParser().Parse(text.NewReader(markdown))
	_ = ast.Walk(tree, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering || n.Type() != ast.TypeBlock {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.HTMLBlock:
			content := string(n.Lines().Value(markdown))
			if n.HasClosure() {
				content += string(n.ClosureLine.Value(markdown))
			}
			for _, c := range docCommentPattern.FindAllStringSubmatch(content, -1) {
				comments = append(comments, docComment{c[1], strings.TrimSpace(c[2])})
			}
			return ast.WalkContinue, nil
		case *ast.CodeBlock, *ast.FencedCodeBlock:
			b := &docBlock{page: page, text: string(n.Lines().Value(markdown)), comments: comments}
			if fenced, ok := n.(*ast.FencedCodeBlock); ok {
				b.language = string(fenced.Language(markdown))
			}
			if n.Lines().Len() > 0 {
				b.line = 1 + strings.Count(string(markdown[:n.Lines().At(0).Start]), "\n")
			}
			blocks = append(blocks, b)
		}
		if n.Kind() != ast.KindDocument && n.Kind() != ast.KindList && n.Kind() != ast.KindListItem {
			comments = nil
		}
		return ast.WalkContinue, nil
	})
	return blocks
}
