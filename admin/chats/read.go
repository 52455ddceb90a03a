package chats

import (
	"context"

	"gatehouse/admin/page"
	"gatehouse/core"
)

// A read is what was read of a file that came with a message.
type read struct {
	Name, About string
	Truncated   bool
	Preview     string
}

// reads adds to users' messages what was read of their files.
func (p *Pages) reads(ctx context.Context, id string, list []said) error {
	if p.o.Read == nil {
		return nil
	}
	var runs []string
	at := map[string]int{} // run → its message in list
	for i := range list {
		if _, known := at[list[i].Run]; list[i].Who == "person" && list[i].Run != "" && !known {
			at[list[i].Run] = i
			runs = append(runs, list[i].Run)
		}
	}
	files, err := p.o.Read(ctx, id, runs...)
	for _, f := range files {
		about := counted(f.Words, "word")
		if f.Pages > 0 {
			about = counted(f.Pages, "page") + ", " + about
		}
		s := &list[at[f.Run]]
		s.Read = append(s.Read, read{core.CutRunes(core.CleanName(f.Name), 120), about, f.Truncated, f.Preview})
	}
	return err
}

// counted returns a number with its thousands set apart, and the noun for it.
func counted(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return page.Grouped(int64(n)) + " " + noun
}
