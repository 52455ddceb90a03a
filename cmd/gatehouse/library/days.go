package library

import (
	"strings"

	"gatehouse/core/index/crawl"
	"gatehouse/core/journal"
)

// days are the files of journals.
type days struct{}

// IsDay reports whether the file at name is a day of a journal.
func (days) IsDay(name string) bool { return journal.IsDay(name) }

// Parts returns what is in such a file.
func (days) Parts(name string, data []byte) []crawl.Part {
	list := journal.Parts(name, data)
	out := make([]crawl.Part, len(list))
	for i, p := range list {
		title := strings.Join(strings.Fields(p.Date+" "+p.Time+" "+p.Title), " ")
		out[i] = crawl.Part{ID: p.ID, Title: title, Text: p.Searched(), Line: p.Line, At: p.At()}
		if p.ID == "" && p.Title != "" { // a passage of the file, whose title is another
			out[i].Text, out[i].Line = p.Title+"\n\n"+out[i].Text, max(p.Line-2, 1)
		}
	}
	return out
}

var _ crawl.Journal = days{}
