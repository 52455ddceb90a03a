package search

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"gatehouse/core"
	"gatehouse/core/tool"
	"gatehouse/core/tool/files/place"
)

// maxHits bounds the files that Glob names.
const maxHits = 100

type globInput struct {
	Pattern string `json:"pattern" tool:"required"`
	Path    string `json:"path"`

	re *regexp.Regexp
}

// decodeGlob also moves the fixed beginning of the pattern into the path, so
// that only what must be searched is asked for.
func decodeGlob(raw json.RawMessage) (in globInput, err error) {
	if err := tool.Decode(raw, &in); err != nil {
		return in, err
	}
	if _, err := compileGlob("pattern", in.Pattern); err != nil {
		return in, err
	}
	base, rest := doublestar.SplitPattern(in.Pattern)
	if slices.Contains(strings.Split(rest, "/"), "..") {
		return in, core.Errorf(core.Invalid, "pattern must not go up (..) behind a wildcard")
	}
	if in.re, err = compileGlob("pattern", rest); err != nil {
		return in, err
	}
	in.Pattern = rest
	if in.Path == "" || filepath.IsAbs(base) {
		in.Path = base
	} else {
		in.Path = filepath.Join(in.Path, base)
	}
	return in, nil
}

func touchGlob(t *tool.Turn, raw json.RawMessage) (tool.Access, error) {
	in, err := decodeGlob(raw)
	if err != nil {
		return tool.Access{}, err
	}
	name, err := t.Name(in.Path)
	return tool.Access{Read: []string{name}}, err
}

func (s searcher) glob(ctx context.Context, c *tool.Call) (tool.Result, error) {
	in, err := decodeGlob(c.Input)
	if err != nil {
		return tool.Result{}, err
	}
	shown := place.Shown(c.Turn, in.Path)
	name, err := place.Decided(c.Access.Read, shown)
	if err != nil {
		return tool.Result{}, err
	}
	found := newest{limit: maxHits}
	w := &walk{open: s.open, t: c.Turn, visit: func(_ context.Context, h hit) error {
		if in.re.MatchString(h.rel) {
			found.add(h)
		}
		return nil
	}}
	if err := w.run(ctx, name); err != nil {
		return tool.Result{}, place.Explain(shown, err)
	}
	return tool.Result{Text: found.text(c.Turn, in, w.cut)}, nil
}

func (n *newest) text(t *tool.Turn, in globInput, cut string) string {
	var b strings.Builder
	if n.count == 0 {
		fmt.Fprintf(&b, "No file below %s matches %s.\n", place.Shown(t, in.Path), in.Pattern)
	}
	for _, e := range n.sorted() {
		b.WriteString(place.Show(t, e.hit.name) + "\n")
	}
	if n.count > n.limit {
		fmt.Fprintf(&b, "(%d more, older: narrow the pattern to see them)\n", n.count-n.limit)
	}
	if cut != "" {
		fmt.Fprintf(&b, "(%s: narrow the path or the pattern)\n", cut)
	}
	return b.String()
}

// newest keeps the limit newest of the hits that it is given.
type newest struct {
	limit int
	count int
	list  []dated // at most 2 × limit
}

type dated struct {
	hit hit
	mod time.Time
}

func (n *newest) add(h hit) {
	st, err := h.at.Lstat()
	if err != nil || !st.Mode().IsRegular() {
		return // gone in this moment
	}
	n.count++
	n.list = append(n.list, dated{h, st.ModTime()})
	if len(n.list) >= 2*n.limit {
		n.list = n.sorted()
	}
}

// sorted returns the newest, at most limit, the newest first.
func (n *newest) sorted() []dated {
	core.Sort(n.list, func(a, b dated) int {
		if c := b.mod.Compare(a.mod); c != 0 {
			return c
		}
		return strings.Compare(a.hit.name, b.hit.name)
	})
	return n.list[:min(n.limit, len(n.list))]
}
