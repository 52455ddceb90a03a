package chats

import (
	"cmp"
	"context"

	"gatehouse/admin/page"
	"gatehouse/core"
	"gatehouse/core/session"
)

// groupsOf returns the names of the groups that conversations are, or were, held in, by
// conversation. A group's conversation belongs to the operator.
func (p *Pages) groupsOf(ctx context.Context, list ...session.Session) (map[string]string, error) {
	var ids []string
	for i := range list {
		if list[i].User == core.Operator && list[i].Source != core.APIBot && list[i].Source != core.PanelSource {
			ids = append(ids, list[i].ID)
		}
	}
	if p.o.Groups == nil || len(ids) == 0 {
		return nil, nil
	}
	groups, err := p.o.Groups(ctx, ids...)
	for id, name := range groups {
		groups[id] = cmp.Or(name, "A group")
	}
	return groups, err
}

// within returns what names a group behind a title.
func within(group string) string {
	if group == "" {
		return ""
	}
	return " · " + group
}

// trustWord returns a level as it is shown with a message.
func trustWord(t core.Trust) string {
	if t == core.Stranger {
		return "no access"
	}
	return t.String()
}

// A quoted is what a message refers to.
type quoted struct {
	Lead, Text string
}

func quotedOf(q *core.Quote) *quoted {
	text, _ := page.Shorten(q.Text, maxResult)
	who := cmp.Or(q.Name, "someone")
	switch {
	case q.Forwarded:
		return &quoted{Lead: "Forwarded from " + who}
	case q.Ours:
		return &quoted{"About this passage of the answer", text}
	case q.Root:
		return &quoted{"In a thread that began with this, from " + who, text}
	}
	return &quoted{"In answer to " + who, text}
}
