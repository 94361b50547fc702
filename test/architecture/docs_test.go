package architecture

import (
	"fmt"
	"go/ast"
	"go/token"
	"strings"
)

// checkDocs demands a comment for every package and every exported name.
func checkDocs(t *tree) []violation {
	var bad []violation
	for _, p := range t.packages {
		documented, code := false, false
		for _, f := range p.files {
			if f.test {
				continue
			}
			code = true
			documented = documented || f.ast.Doc != nil
			if !within(p.dir, "test") {
				bad = append(bad, undocumented(t, f)...)
			}
		}
		if code && !documented {
			bad = append(bad, violation{p.dir, "the package has no comment"})
		}
	}
	return bad
}

// undocumented finds exported declarations of a file without a comment that
// starts with their name.
func undocumented(t *tree, f *file) []violation {
	var bad []violation
	add := func(pos token.Pos, format string, args ...any) {
		bad = append(bad, violation{t.at(pos), fmt.Sprintf(format, args...)})
	}
	for _, decl := range f.ast.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if !d.Name.IsExported() || d.Recv != nil && !ast.IsExported(receiver(d)) {
				continue
			}
			if why := badDoc(d.Doc, d.Name.Name); why != "" {
				add(d.Pos(), "%s %s", d.Name.Name, why)
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch spec := s.(type) {
				case *ast.TypeSpec:
					doc := spec.Doc
					if doc == nil && !d.Lparen.IsValid() {
						doc = d.Doc
					}
					if !spec.Name.IsExported() || d.Lparen.IsValid() && doc == nil && d.Doc != nil {
						continue
					}
					if why := badDoc(doc, spec.Name.Name); why != "" {
						add(spec.Pos(), "%s %s", spec.Name.Name, why)
					}
				case *ast.ValueSpec:
					if spec.Doc != nil || spec.Comment != nil || d.Doc != nil {
						continue
					}
					for _, name := range spec.Names {
						if name.IsExported() {
							add(name.Pos(), "%s has no comment, and its group has none", name.Name)
						}
					}
				}
			}
		}
	}
	return bad
}

// badDoc says what is wrong with a comment; "" when it starts with the name.
func badDoc(doc *ast.CommentGroup, name string) string {
	if doc == nil {
		return "has no comment"
	}
	text := strings.TrimSpace(doc.Text())
	for _, article := range []string{"", "A ", "An ", "The "} {
		if rest, ok := strings.CutPrefix(text, article+name); ok && !strings.HasPrefix(rest, "_") {
			return ""
		}
	}
	return "has a comment that does not start with its name"
}
