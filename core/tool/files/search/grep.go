package search

import (
	"context"
	"encoding/json"
	"maps"
	"path"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"gatehouse/core"
	"gatehouse/core/tool"
	"gatehouse/core/tool/files/place"
)

type grepInput struct {
	Pattern   string `json:"pattern" tool:"required"`
	Path      string `json:"path"`
	Glob      string `json:"glob"`
	Type      string `json:"type"`
	Mode      string `json:"output_mode"`
	Fold      bool   `json:"-i"`
	Numbers   *bool  `json:"-n"`
	After     int    `json:"-A"`
	Before    int    `json:"-B"`
	Around    int    `json:"-C"`
	Context   int    `json:"context"` // another name of -C
	HeadLimit *int   `json:"head_limit"`
	Offset    int    `json:"offset"`
	Multiline bool   `json:"multiline"`

	re            *regexp.Regexp
	ofType, named chooser
}

// Modes of output.
const (
	modeContent = "content"
	modeFiles   = "files_with_matches"
	modeCount   = "count"
)

const (
	defaultHead = 250 // lines or files, unless head_limit states otherwise
	maxAround   = 100 // lines of context
	// maxProgram bounds the steps that an expression may take for each
	// character, in instructions of its compiled form.
	maxProgram = 2000
)

func decodeGrep(raw json.RawMessage) (in grepInput, err error) {
	if err := tool.Decode(raw, &in); err != nil {
		return in, err
	}
	if in.Path == "" {
		in.Path = "."
	}
	if in.Mode == "" {
		in.Mode = modeFiles
	}
	in.Around = max(in.Around, in.Context)
	in.After, in.Before = max(in.After, in.Around), max(in.Before, in.Around)
	switch {
	case in.Pattern == "" || len(in.Pattern) > maxPattern:
		return in, core.Errorf(core.Invalid, "pattern must have 1 to %d bytes", maxPattern)
	case !slices.Contains([]string{modeContent, modeFiles, modeCount}, in.Mode):
		return in, core.Errorf(core.Invalid, "output_mode is one of content, files_with_matches, count")
	case in.After < 0 || in.Before < 0 || in.Offset < 0 || in.HeadLimit != nil && *in.HeadLimit < 0:
		return in, core.Errorf(core.Invalid, "-A, -B, -C, head_limit and offset are not negative")
	case in.After > maxAround || in.Before > maxAround:
		return in, core.Errorf(core.Invalid, "-A, -B and -C are at most %d", maxAround)
	case in.Type != "" && typeGlobs[in.Type] == "":
		return in, core.Errorf(core.Invalid, "type is one of %s", strings.Join(slices.Sorted(maps.Keys(typeGlobs)), ", "))
	}
	if in.Glob != "" {
		if in.named, err = newChooser(in.Glob); err != nil {
			return in, err
		}
	}
	if in.Type != "" {
		if in.ofType, err = newChooser(typeGlobs[in.Type]); err != nil {
			return in, err
		}
	}
	return in, in.compile()
}

func (in *grepInput) compile() (err error) {
	flags := ""
	if in.Fold {
		flags += "i"
	}
	if in.Multiline {
		flags += "ms"
	}
	p := in.Pattern
	if flags != "" {
		p = "(?" + flags + ")" + p
	}
	tree, err := syntax.Parse(p, syntax.Perl)
	if err == nil {
		var program *syntax.Prog
		if program, err = syntax.Compile(tree.Simplify()); err == nil && len(program.Inst) > maxProgram {
			return core.Errorf(core.Invalid, "pattern repeats too much ({n} writes a part out n times); make it simpler")
		}
	}
	if err == nil {
		in.re, err = regexp.Compile(p)
	}
	if err != nil {
		return core.Errorf(core.Invalid, "pattern is not a regular expression of RE2 (no look-around, no back references): %s", strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
	return nil
}

// head returns how many lines or files are shown.
func (in *grepInput) head() int {
	switch {
	case in.HeadLimit == nil:
		return defaultHead
	case *in.HeadLimit == 0:
		return maxEntries
	}
	return *in.HeadLimit
}

// wants reports whether a file is one to be searched, by its path below the directory.
func (in *grepInput) wants(rel string) bool {
	return in.ofType.match(rel) && in.named.match(rel)
}

// A chooser chooses files by a glob; the zero value takes all.
type chooser struct {
	re   *regexp.Regexp
	base bool // a glob without a slash goes by the name alone
	not  bool
}

func newChooser(g string) (c chooser, err error) {
	g, c.not = strings.CutPrefix(g, "!")
	c.base = !strings.Contains(g, "/")
	c.re, err = compileGlob("glob", strings.TrimPrefix(g, "/"))
	return c, err
}

func (c chooser) match(rel string) bool {
	if c.re == nil {
		return true
	}
	if c.base {
		rel = path.Base(rel)
	}
	return c.re.MatchString(rel) != c.not
}

// typeGlobs are the file types of Grep, by ripgrep's names.
var typeGlobs = map[string]string{
	"c": "*.{c,h}", "cpp": "*.{cpp,cc,cxx,hpp,hh,hxx,h}", "cs": "*.cs", "css": "*.{css,scss}", "csv": "*.csv",
	"go": "*.go", "html": "*.{html,htm}", "java": "*.java", "js": "*.{js,jsx,mjs,cjs}", "json": "*.{json,jsonl}",
	"kotlin": "*.{kt,kts}", "lua": "*.lua", "md": "*.{md,markdown,mdx}", "php": "*.php", "py": "*.{py,pyi}",
	"ruby": "*.rb", "rust": "*.rs", "sh": "*.{sh,bash,zsh}", "sql": "*.sql", "swift": "*.swift", "toml": "*.toml",
	"ts": "*.{ts,tsx,mts,cts}", "txt": "*.txt", "xml": "*.xml", "yaml": "*.{yaml,yml}",
}

func touchGrep(t *tool.Turn, raw json.RawMessage) (tool.Access, error) {
	in, err := decodeGrep(raw)
	if err != nil {
		return tool.Access{}, err
	}
	name, err := t.Name(in.Path)
	return tool.Access{Read: []string{name}}, err
}

func (s searcher) grep(ctx context.Context, c *tool.Call) (tool.Result, error) {
	in, err := decodeGrep(c.Input)
	if err != nil {
		return tool.Result{}, err
	}
	shown := place.Shown(c.Turn, in.Path)
	name, err := place.Decided(c.Access.Read, shown)
	if err != nil {
		return tool.Result{}, err
	}
	g := newSearch(c.Turn, in)
	w := &walk{open: s.open, t: c.Turn, visit: func(ctx context.Context, h hit) error {
		if !in.wants(h.rel) {
			return nil
		}
		return g.file(ctx, s.open, h)
	}}
	if err := w.run(ctx, name); err != nil {
		return tool.Result{}, place.Explain(shown, err)
	}
	return tool.Result{Text: g.result(w.cut)}, nil
}
