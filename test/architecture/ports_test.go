package architecture

import (
	"fmt"
	"go/ast"
	"slices"
	"strings"
)

// port is one exported interface of core/ports.
type port struct {
	name     string
	spec     *ast.InterfaceType
	methods  []string // own and embedded
	own      int
	mentions []string // other ports its methods and embeddings name
	embeds   []string
	pos      ast.Node
}

// row is one line of the table in core/ports/doc.go.
type row struct {
	port, consumer, suite, adapters string
}

// maxMethods is how many methods a port may declare itself.
const maxMethods = 5

// checkPorts compares the interfaces of core/ports with the table in its
// package comment, and the table with the code.
func checkPorts(t *tree) []violation {
	p := t.pkg("core/ports")
	if p == nil {
		return nil
	}
	ports := portsOf(p)
	table := tableOf(p)
	var bad []violation
	add := func(where, format string, args ...any) {
		bad = append(bad, violation{where, fmt.Sprintf(format, args...)})
	}
	for _, r := range table {
		if _, ok := ports[r.port]; !ok {
			add("core/ports/doc.go", "the table names %s, which is no interface of the package", r.port)
		}
	}
	for name, port := range ports {
		where := t.at(port.pos.Pos())
		if port.own > maxMethods {
			add(where, "%s declares %d methods; %d are the most a port may have", name, port.own, maxMethods)
		}
		i := slices.IndexFunc(table, func(r row) bool { return r.port == name })
		if i < 0 {
			if !partOfAnother(name, ports, table) && !composition(port, ports, table) {
				add(where, "%s has no line in the table of core/ports/doc.go and is no part of a port that has one", name)
			}
			if !implemented(t, port) {
				add(where, "no adapter implements %s", name)
			}
			continue
		}
		bad = append(bad, checkRow(t, table[i], port, where)...)
	}
	return bad
}

// checkRow holds one line of the table against the code.
func checkRow(t *tree, r row, port port, where string) []violation {
	var bad []violation
	add := func(format string, args ...any) {
		bad = append(bad, violation{where, fmt.Sprintf(format, args...)})
	}
	consumers := consumerDirs(r.consumer)
	for _, dir := range consumers {
		switch {
		case !anyBelow(t, dir):
			add("the consumer %s of %s does not exist", dir, r.port)
		case !t.mentions(dir, "core/ports", r.port):
			add("%s does not use %s, though the table says so", dir, r.port)
		}
	}
	suite, ok := strings.CutPrefix(r.suite, "porttest.")
	switch {
	case !ok:
		add("%s has no suite in the table", r.port)
	case !t.declares("core/ports/porttest", suite):
		add("the suite porttest.%s of %s does not exist", suite, r.port)
	case t.declares("core/ports/porttest", suite) && !t.usedInTest("core/ports/porttest", suite):
		add("no adapter runs the suite porttest.%s", suite)
	}
	if !implemented(t, port) {
		add("no adapter implements %s", r.port)
	}
	return bad
}

// portsOf reads the exported interfaces of a package.
func portsOf(p *sources) map[string]port {
	ports := map[string]port{}
	for _, f := range p.files {
		if f.test {
			continue
		}
		for _, decl := range f.ast.Decls {
			gen, ok := decl.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, s := range gen.Specs {
				spec, ok := s.(*ast.TypeSpec)
				if !ok || !spec.Name.IsExported() {
					continue
				}
				if iface, ok := spec.Type.(*ast.InterfaceType); ok {
					ports[spec.Name.Name] = port{name: spec.Name.Name, spec: iface, pos: spec}
				}
			}
		}
	}
	for name, p := range ports {
		p.methods, p.own = methodsOf(p.spec, ports)
		ast.Inspect(p.spec, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				if _, ok := ports[id.Name]; ok {
					p.mentions = append(p.mentions, id.Name)
				}
			}
			return true
		})
		for _, field := range p.spec.Methods.List {
			if id, ok := field.Type.(*ast.Ident); ok && len(field.Names) == 0 {
				p.embeds = append(p.embeds, id.Name)
			}
		}
		ports[name] = p
	}
	return ports
}

// methodsOf returns the names of an interface's methods with those of what it
// embeds, and how many it declares itself.
func methodsOf(spec *ast.InterfaceType, ports map[string]port) (all []string, own int) {
	for _, field := range spec.Methods.List {
		if len(field.Names) > 0 {
			own += len(field.Names)
			for _, n := range field.Names {
				all = append(all, n.Name)
			}
			continue
		}
		switch e := field.Type.(type) {
		case *ast.Ident:
			if other, ok := ports[e.Name]; ok {
				more, _ := methodsOf(other.spec, ports)
				all = append(all, more...)
			}
		case *ast.SelectorExpr:
			if e.Sel.Name == "Closer" {
				all = append(all, "Close")
			}
		}
	}
	return all, own
}

// tableOf reads the table in the package comment: columns of words, the third
// of which names a suite.
func tableOf(p *sources) []row {
	var rows []row
	for _, f := range p.files {
		if f.ast.Doc == nil {
			continue
		}
		for line := range strings.Lines(f.ast.Doc.Text()) {
			if !strings.HasPrefix(line, "\t") {
				continue
			}
			cols := strings.Fields(line)
			i := slices.IndexFunc(cols, func(c string) bool { return strings.HasPrefix(c, "porttest.") })
			if i < 2 {
				continue
			}
			rows = append(rows, row{
				port: cols[0], consumer: strings.Join(cols[1:i], ""), suite: cols[i], adapters: strings.Join(cols[i+1:], " "),
			})
		}
	}
	return rows
}

// consumerDirs turns "services/sessions,turns" into directories.
func consumerDirs(column string) []string {
	var dirs []string
	for name := range strings.SplitSeq(column, ",") {
		name = strings.TrimSpace(name)
		switch {
		case name == "services", strings.HasPrefix(name, "services/"):
			dirs = append(dirs, "core/"+name)
		case len(dirs) > 0 && strings.HasPrefix(dirs[0], "core/services/"):
			dirs = append(dirs, "core/services/"+name)
		default:
			dirs = append(dirs, "adapters/"+name)
		}
	}
	return dirs
}

// partOfAnother reports whether a port with a line of its own embeds name or
// names it in a method.
func partOfAnother(name string, ports map[string]port, table []row) bool {
	return slices.ContainsFunc(table, func(r row) bool { return slices.Contains(ports[r.port].mentions, name) })
}

// composition reports whether p is made of ports that all have a line, so
// that only those who put things together ever need its name.
func composition(p port, ports map[string]port, table []row) bool {
	known := func(name string) bool {
		return slices.ContainsFunc(table, func(r row) bool { return r.port == name })
	}
	return len(p.embeds) > 1 && !slices.ContainsFunc(p.embeds, func(e string) bool { return !known(e) })
}

func anyBelow(t *tree, dir string) bool {
	return slices.ContainsFunc(t.packages, func(p *sources) bool { return within(p.dir, dir) })
}

// mentions reports whether code below dir names a thing of another package.
func (t *tree) mentions(dir, pkg, name string) bool {
	found := false
	t.code(func(_ *sources, f *file) {
		f.selections(func(from string, sel *ast.SelectorExpr) {
			if d, ok := t.local(from); ok && d == pkg && sel.Sel.Name == name {
				found = true
			}
		})
	}, dir)
	return found
}

// usedInTest reports whether a test outside pkg names a thing of it.
func (t *tree) usedInTest(pkg, name string) bool {
	found := false
	for _, p := range t.packages {
		for _, f := range p.files {
			if !f.test || p.dir == pkg {
				continue
			}
			f.selections(func(from string, sel *ast.SelectorExpr) {
				if d, ok := t.local(from); ok && d == pkg && sel.Sel.Name == name {
					found = true
				}
			})
		}
	}
	return found
}

// declares reports whether a package has a function of that name.
func (t *tree) declares(dir, name string) bool {
	p := t.pkg(dir)
	if p == nil {
		return false
	}
	for _, f := range p.files {
		for _, decl := range f.ast.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && !f.test && fn.Recv == nil && fn.Name.Name == name {
				return true
			}
		}
	}
	return false
}

// implemented reports whether a type of some adapter (or of the services, for
// tools that need the engine, or of bootstrap) has all methods of a port.
func implemented(t *tree, p port) bool {
	has := map[string]map[string]bool{} // directory and type -> methods
	embeds := map[string][]string{}
	t.code(func(s *sources, f *file) {
		for _, decl := range f.ast.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if name := receiver(d); name != "" {
					key := s.dir + "." + name
					if has[key] == nil {
						has[key] = map[string]bool{}
					}
					has[key][d.Name.Name] = true
				}
			case *ast.GenDecl:
				collectEmbeds(s.dir, d, embeds)
			}
		}
	}, "adapters", "core/services", "bootstrap")
	for key, methods := range has {
		all := func(m string) bool {
			if methods[m] {
				return true
			}
			for _, e := range embeds[key] {
				if has[e][m] {
					return true
				}
				// An embedded port brings its methods along.
				if strings.HasPrefix(e, "ports.") {
					return true
				}
			}
			return false
		}
		if len(p.methods) > 0 && !slices.ContainsFunc(p.methods, func(m string) bool { return !all(m) }) {
			return true
		}
	}
	return false
}

// receiver returns the type name of a method's receiver.
func receiver(fn *ast.FuncDecl) string {
	if fn.Recv == nil || len(fn.Recv.List) == 0 {
		return ""
	}
	e := fn.Recv.List[0].Type
	for {
		switch x := e.(type) {
		case *ast.StarExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}

// collectEmbeds notes which types a struct embeds.
func collectEmbeds(dir string, gen *ast.GenDecl, embeds map[string][]string) {
	for _, s := range gen.Specs {
		spec, ok := s.(*ast.TypeSpec)
		if !ok {
			continue
		}
		st, ok := spec.Type.(*ast.StructType)
		if !ok {
			continue
		}
		key := dir + "." + spec.Name.Name
		for _, field := range st.Fields.List {
			if len(field.Names) > 0 {
				continue
			}
			e := field.Type
			if star, ok := e.(*ast.StarExpr); ok {
				e = star.X
			}
			switch x := e.(type) {
			case *ast.Ident:
				embeds[key] = append(embeds[key], dir+"."+x.Name)
			case *ast.SelectorExpr:
				if id, ok := x.X.(*ast.Ident); ok {
					embeds[key] = append(embeds[key], id.Name+"."+x.Sel.Name)
				}
			}
		}
	}
}
