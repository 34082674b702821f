package lint

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// tracked reports whether a file, by path from the root, is of the tree and not a note or
// an output beside it: what git does not ignore, or all if git does not know the tree.
var tracked = sync.OnceValue(func() func(name string) bool {
	out, err := exec.Command("git", "-C", filepath.Join("..", "..", ".."), "ls-files", "-z", "--cached", "--others", "--exclude-standard").Output()
	if err != nil || len(out) == 0 {
		return func(string) bool { return true }
	}
	names := map[string]bool{}
	for _, name := range strings.Split(string(out), "\x00") {
		names[name] = true
	}
	return func(name string) bool { return names[name] }
})

// documents are the Markdown files of the tree, by path from its root.
func documents(t *testing.T) map[string]string {
	t.Helper()
	root := os.DirFS(filepath.Join("..", "..", ".."))
	docs := map[string]string{}
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == ".git" || d.Name() == "testdata") {
			return fs.SkipDir
		}
		if d.Type().IsRegular() && path.Ext(name) == ".md" && tracked()(name) {
			b, err := fs.ReadFile(root, name)
			if err != nil {
				return err
			}
			docs[name] = string(b)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return docs
}

var (
	fence   = regexp.MustCompile("(?ms)^```.*?^```$")
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	dropped = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// anchors are the fragments that the headings of a document can be linked by, as
// GitHub makes them.
func anchors(text string) []string {
	var all []string
	for _, m := range heading.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
		a := dropped.ReplaceAllString(strings.ToLower(m[1]), "")
		all = append(all, strings.ReplaceAll(a, " ", "-"))
	}
	return all
}

// TestLinks: links from document to document lead to a file, and to a heading of
// it where they name one; every page of docs/ is in its index.
func TestLinks(t *testing.T) {
	docs := documents(t)
	if len(docs) < 10 {
		t.Fatalf("only %d documents were read", len(docs))
	}
	for name, text := range docs {
		for _, m := range link.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
			to, fragment, _ := strings.Cut(m[1], "#")
			if strings.Contains(to, "://") || strings.HasPrefix(to, "mailto:") {
				continue
			}
			target := path.Join(path.Dir(name), to)
			if to == "" {
				target = name
			}
			if _, err := os.Stat(filepath.Join("..", "..", "..", filepath.FromSlash(target))); err != nil {
				t.Errorf("%s links to %s: %v", name, m[1], err)
			} else if fragment != "" && !slices.Contains(anchors(docs[target]), fragment) {
				t.Errorf("%s links to %s, which has no such heading", name, m[1])
			}
		}
		if dir, base := path.Split(name); strings.HasPrefix(dir, "docs/") && base != "README.md" {
			if !strings.Contains(docs[dir+"README.md"], "]("+base+")") {
				t.Errorf("%sREADME.md does not list %s", dir, base)
			}
		}
	}
}

// declared are the names that a package's files declare, without its tests:
// constants, variables, functions, types, and Type.Member for methods, fields and
// what an interface asks for.
func declared(t *testing.T, dir string) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", "..", filepath.FromSlash(dir), "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	members := func(of string, l *ast.FieldList) {
		for _, f := range l.List {
			for _, n := range f.Names {
				names[of+"."+n.Name] = true
			}
		}
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				of := ""
				if d.Recv != nil {
					ast.Inspect(d.Recv.List[0].Type, func(n ast.Node) bool {
						if id, ok := n.(*ast.Ident); ok && of == "" {
							of = id.Name + "."
						}
						return true
					})
				}
				names[of+d.Name.Name] = true
			case *ast.GenDecl:
				for _, s := range d.Specs {
					switch s := s.(type) {
					case *ast.ValueSpec:
						for _, n := range s.Names {
							names[n.Name] = true
						}
					case *ast.TypeSpec:
						names[s.Name.Name] = true
						switch k := s.Type.(type) {
						case *ast.StructType:
							members(s.Name.Name, k.Fields)
						case *ast.InterfaceType:
							members(s.Name.Name, k.Methods)
						}
					}
				}
			}
		}
	}
	return names
}

// TestMap: the files that a row of ARCHITECTURE.md names are there. A name without a folder
// is that of a file beside the one before it.
func TestMap(t *testing.T) {
	file, rows := regexp.MustCompile("`((?:[\\w.]+/)*)([\\w.]+\\.go)`"), 0
	for _, row := range strings.Split(documents(t)["ARCHITECTURE.md"], "\n") {
		if !strings.HasPrefix(row, "| ") || strings.Contains(row, "NAME") {
			continue
		}
		dir := ""
		for _, m := range file.FindAllStringSubmatch(row, -1) {
			if m[1] != "" {
				dir = m[1]
			}
			rows++
			if _, err := os.Stat(filepath.Join("..", "..", "..", filepath.FromSlash(dir+m[2]))); err != nil {
				t.Errorf("%.40s... names %s%s: %v", row, dir, m[2], err)
			}
		}
	}
	if rows < 80 {
		t.Errorf("only %d files were looked for", rows)
	}
}

// TestGlossary: every word of ARCHITECTURE.md's glossary is there once, and is
// defined where its row says.
func TestGlossary(t *testing.T) {
	_, rest, found := strings.Cut(documents(t)["ARCHITECTURE.md"], "## Glossary\n")
	text, _, _ := strings.Cut(rest, "\n## ")
	rows := regexp.MustCompile("(?m)^\\| ([^|]+) \\| [^|]+ \\| (`[^|]+`) \\|$").FindAllStringSubmatch(text, -1)
	if !found || len(rows) < 40 {
		t.Fatalf("ARCHITECTURE.md has a glossary of %d words", len(rows))
	}
	seen := map[string]bool{}
	for _, row := range rows {
		if seen[row[1]] {
			t.Errorf("%s is there twice", row[1])
		}
		seen[row[1]] = true
		for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[2], -1) {
			dir, base := path.Split(m[1])
			pkg, name, _ := strings.Cut(base, ".")
			if !declared(t, dir+pkg)[name] {
				t.Errorf("%s: package %s declares no %s", row[1], dir+pkg, name)
			}
		}
	}
}

// TestNames: what documents say of the code by the folder of a package and a name
// is there; the name may be that of a method without its type.
func TestNames(t *testing.T) {
	re := regexp.MustCompile("`((?:[a-z]+/)*[a-z]+)\\.([A-Za-z]\\w*(?:\\.\\w+)?)`")
	for name, text := range documents(t) {
		found := re.FindAllStringSubmatch(text, -1)
		if name == "docs/miss.md" && len(found) < 30 {
			t.Errorf("docs/miss.md has %d names", len(found))
		}
		if name == "CHANGELOG.md" { // says what was
			continue
		}
		for _, m := range found {
			if m[2] == "go" || m[2] == "md" || m[2] == "mod" {
				continue // a file
			}
			if fi, err := os.Stat(filepath.Join("..", "..", "..", filepath.FromSlash(m[1]))); err != nil || !fi.IsDir() {
				continue // of the standard library, or the last part of a path
			}
			names := declared(t, m[1])
			there := names[m[2]]
			for n := range names {
				there = there || strings.HasSuffix(n, "."+m[2])
			}
			if !there {
				t.Errorf("%s: package %s declares no %s", name, m[1], m[2])
			}
		}
	}
}

// TestCitations: what docs/bibliography.md lists is cited somewhere by its short
// name, and standards that are cited are in it.
func TestCitations(t *testing.T) {
	list := documents(t)["docs/bibliography.md"]
	missing := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^\| (\w[^|]*) \| \S`).FindAllStringSubmatch(list, -1) {
		missing[m[1]] = true
	}
	if len(missing) < 20 {
		t.Fatalf("docs/bibliography.md has %d entries", len(missing))
	}
	// A name may be cut in two by the end of a line of a comment.
	fold := regexp.MustCompile(`\s*\n\s*(?://)?\s*`)
	standard := regexp.MustCompile(`RFC \d{4}`)
	unnamed := regexp.MustCompile(`\bseed (?:` + `thesis|00\d)\b`)
	root := os.DirFS(filepath.Join("..", "..", ".."))
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && d.Name() == ".git" {
			return fs.SkipDir
		}
		if ext := path.Ext(name); name == "docs/bibliography.md" || !d.Type().IsRegular() || ext != ".go" && ext != ".md" || !tracked()(name) {
			return nil
		}
		b, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		text := fold.ReplaceAllString(string(b), " ")
		for short := range missing {
			if strings.Contains(text, short) {
				delete(missing, short)
			}
		}
		if s := unnamed.FindString(text); s != "" {
			t.Errorf("%s: %q names no source; docs/bibliography.md has short names", name, s)
		}
		for _, s := range misplaced(text) {
			if name == "internal/tools/lint/docs_test.go" {
				continue // TestMisplaced
			}
			t.Errorf("%s cites %s, which there is not; what there is, contents has", name, s)
		}
		for _, s := range standard.FindAllString(text, -1) {
			if !strings.Contains(list, "\n| "+s+" |") {
				t.Errorf("%s cites %s, which docs/bibliography.md does not list", name, s)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for short := range missing {
		t.Errorf("docs/bibliography.md lists %s, which nothing cites", short)
	}
}

// contents has the last table, figure and section of each part of the documents that the
// design comes from: in "3-2", table 3-1 is, and 3-3 is not. Standards are not in it, since
// readers have them.
var contents = map[string]map[string]string{
	"Nüssle 2008": {
		"table":   "1-1 3-2 5-8 7-10 9-3",
		"figure":  "1-2 2-22 3-3 4-12 5-16 6-7 7-15 8-7 9-8",
		"section": "9 1.2 2.9 2.1.1 2.2.2 2.3.2 2.6.3 4.5 4.4.4 5.7 5.1.9 5.2.10 6.7 6.4.5 7.8 7.5.7 8.8 8.1.6 9.4",
	},
	"Seifert and Rehm 2000": {"table": "1", "figure": "3", "section": "5 2.2 3.2 4.4 4.3.3"},
	"Banikazemi et al.":     {"table": "5", "figure": "13", "section": "9 2.3 2.2.2 3.4 4.2 5.5 6.3 6.2.6 7.2 7.1.2 7.2.2"},
	"Papamichael 2007":      {"table": "3.7", "figure": "2.9 3.9 4.3 5.17", "section": "7 1.2 2.3 2.1.5 2.2.3 2.3.7 3.5 3.1.2 3.2.2 3.4.5 3.5.2 4.8 4.2.5 4.5.2 5.8 5.2.3 5.3.2 5.6.2 5.7.3 5.8.4"},
}

const cited = `(?i:(table|figure|section|chapter)s?) (\d+(?:[.-]\d+)*(?:(?:, and|,| and| to) \d+(?:[.-]\d+)*)*)`

var (
	citation = regexp.MustCompile(cited)
	// Names are followed by numbers, or follow them.
	after    = regexp.MustCompile(`^(?:, |: | \()(?:` + cited + `|\d[\d.]*\d)(?:, ` + cited + `)*`)
	before   = regexp.MustCompile(cited + `(?: and (?:of )?` + cited + `)* of (?:the )?$`)
	hyphened = regexp.MustCompile(`^s? \d+-\d+(?:(?:, and|,| and| to) \d+-\d+)*`)
	number   = regexp.MustCompile(`\d+(?:[.-]\d+)*`)
)

// misplaced are the tables, figures and sections that text cites and contents lacks.
func misplaced(text string) (all []string) {
	text = strings.ReplaceAll(strings.ReplaceAll(text, "the thesis' ", "Nüssle 2008, "), "the thesis", "Nüssle 2008")
	look := func(short, part string) {
		if !citation.MatchString(part) {
			part = "section " + number.FindString(part)
		}
		for _, m := range citation.FindAllStringSubmatch(part, -1) {
			kind := strings.ToLower(m[1])
			list := contents[short][strings.Replace(kind, "chapter", "section", 1)]
			for _, n := range number.FindAllString(m[2], -1) {
				if !isIn(n, strings.Fields(list)) {
					all = append(all, kind+" "+n+" of "+short)
				}
			}
		}
	}
	for short := range contents {
		for rest, at := text, 0; ; {
			i := strings.Index(rest[at:], short)
			if i < 0 {
				break
			}
			if m := before.FindString(rest[max(at, at+i-80) : at+i]); m != "" {
				look(short, m)
			}
			at += i + len(short)
			if m := after.FindString(rest[at:]); m != "" {
				look(short, m)
			}
		}
	}
	// Only one of them numbers with hyphens, and is often cited by the number alone.
	for _, word := range []string{"able", "igure"} {
		for i, part := range strings.Split(text, word) {
			if m := hyphened.FindString(part); i > 0 && m != "" {
				look("Nüssle 2008", map[string]string{"able": "table", "igure": "figure"}[word]+m)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// isIn reports whether a number is at most the one of last that counts the same.
func isIn(n string, last []string) bool {
	split := func(n string) (string, int) {
		i := strings.LastIndexAny(n, ".-") + 1
		v, _ := strconv.Atoi(n[i:])
		return n[:i], v
	}
	part, v := split(n)
	return slices.ContainsFunc(last, func(l string) bool {
		p, most := split(l)
		return p == part && v >= 1 && v <= most
	})
}

// TestMisplaced has the ways in which the tree cites.
func TestMisplaced(t *testing.T) {
	for text, want := range map[string]string{
		"(Nüssle 2008, chapters 5 and 7)":                                 "",
		"(Nüssle 2008, chapters 5 and 10)":                                "chapter 10 of Nüssle 2008",
		"(Nüssle 2008, 7.5.9): see":                                       "section 7.5.9 of Nüssle 2008",
		"Nüssle 2008, section 6.8, figure 6-8):":                          "figure 6-8 of Nüssle 2008, section 6.8 of Nüssle 2008",
		"Nüssle 2008: tables 9-2 and 9-4.":                                "table 9-4 of Nüssle 2008",
		"figures 5-13 to 5-17 of Nüssle 2008":                             "figure 5-17 of Nüssle 2008",
		"the thesis' tables 7-3 and 7-11":                                 "table 7-11 of Nüssle 2008",
		"(section 9.5 of the thesis)":                                     "section 9.5 of Nüssle 2008",
		"Table 2-1 prints it":                                             "table 2-1 of Nüssle 2008",
		"Seifert and Rehm 2000, section 3.3). RFC 9002, section 19.22":    "section 3.3 of Seifert and Rehm 2000",
		"table 2 of Seifert and Rehm 2000":                                "table 2 of Seifert and Rehm 2000",
		"Banikazemi et al., sections 6.2.2 and 6.2.7":                     "section 6.2.7 of Banikazemi et al.",
		"Papamichael 2007, figure 3.10":                                   "figure 3.10 of Papamichael 2007",
		"Of 4 nodes, Nüssle 2008 has 3; the table has 2-1 of Nüssle 2008": "",
	} {
		if got := strings.Join(misplaced(text), ", "); got != want {
			t.Errorf("%q: misplaced %q, not %q", text, got, want)
		}
	}
}

// TestAliases: go doc shows nothing of an alias but its comment, so those of the errors that
// programs take apart have the fields as they are declared.
func TestAliases(t *testing.T) {
	read := func(name string) string {
		b, err := os.ReadFile(filepath.Join("..", "..", "..", filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	declared := read("internal/errs/errs.go") + read("internal/errs/exit.go")
	for _, c := range []struct{ file, name string }{
		{"gas/errors.go", "PeerError"},
		{"gas/errors.go", "ExitError"},
		{"conduits/conduits.go", "PeerError"},
		{"conduits/conduits.go", "ExitError"},
		{"am/am.go", "PeerError"},
	} {
		_, fields, _ := strings.Cut(declared, "type "+c.name+" struct {\n")
		fields, _, ok := strings.Cut(fields, "}")
		want := "//\ttype " + c.name + " struct {\n//\t" + strings.TrimSuffix(strings.ReplaceAll(fields, "\n", "\n//\t"), "//\t") + "//\t}\ntype " + c.name + " = "
		if !ok || !strings.Contains(read(c.file), want) {
			t.Errorf("%s: the comment of %s does not end with\n%s", c.file, c.name, want)
		}
	}
}
