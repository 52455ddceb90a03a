package approvals

import (
	"fmt"

	"gatehouse/admin/page"
	"gatehouse/core/diff"
)

// A changeView is what a call would change in a file.
type changeView struct {
	Problem string // why it cannot be shown
	Lede    string // the change in a sentence
	Diff    page.DiffView
}

func changeOf(f *diff.File, id string) *changeView {
	switch {
	case f == nil:
		return nil
	case f.Problem != "":
		return &changeView{Problem: page.Sentence(page.Exact(f.Problem))}
	}
	return &changeView{Lede: lede(f), Diff: page.NewDiff("more-"+id, "What would change", f.Diff)}
}

// lede returns a change in a sentence.
func lede(f *diff.File) string {
	lines := func(n int) string { return page.Count(n, "line", "lines") }
	about := func(c *diff.Content) string { return c.Type + ", " + page.Size(int64(c.Bytes)) }
	switch {
	case f.Binary && f.New:
		return "A new binary file: " + about(f.After) + "."
	case f.Binary:
		return "A binary file: " + about(f.Before) + ". It becomes " + about(f.After) + "."
	case f.New && f.After.Bytes == 0:
		return "A new, empty file."
	case f.New:
		return fmt.Sprintf("A new file: %s, %s.", lines(f.After.Lines), page.Size(int64(f.After.Bytes)))
	case f.Same():
		return "Nothing changes: the file has this content already."
	case f.Large():
		return fmt.Sprintf("%s would be replaced by %s. That is too much to show.", lines(f.Removed), lines(f.Added))
	}
	return fmt.Sprintf("%s added, %d removed.", lines(f.Added), f.Removed)
}
