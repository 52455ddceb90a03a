package chats

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"

	"gatehouse/admin/page"
	"gatehouse/core"
	"gatehouse/core/session"
)

// A nextModel is the model of the next turn and why it is that one, and those that can be chosen.
type nextModel struct {
	Name, Why string
	Models    []string
}

// choosers reports who chose a model.
var choosers = map[string]string{"session": "chosen here", "chat": "by /model", "agent": "by the agent", "default": "default"}

func (p *Pages) nextOf(ctx context.Context, s session.Session) page.Part[nextModel] {
	return page.Load(ctx, p.frame, "The next model", func(ctx context.Context) (nextModel, error) {
		models, err := p.o.Models(ctx, s)
		if err != nil || p.o.Next == nil {
			return nextModel{Models: models}, err
		}
		name, by, err := p.o.Next(ctx, s)
		return nextModel{name, choosers[by], models}, err
	})
}

// chatAction does {verb} to a conversation.
func (p *Pages) chatAction(r *http.Request, by core.Actor) (page.Flash, string, error) {
	ctx, id := r.Context(), r.PathValue("id")
	back := URL(id)
	value := strings.TrimSpace(r.PostFormValue("value"))
	c := session.Change{Owner: true, Trust: core.Full}
	yes, no, saidIt := true, false, ""
	switch r.PathValue("verb") {
	case "stop":
		return page.Good("The answer is being stopped."), back, p.o.Acts.Stop(ctx, id, by)
	case "retry":
		err := core.Errorf(core.NotFound, "messages cannot be answered again here")
		if p.o.Retry != nil {
			err = p.o.Retry(ctx, value, by)
		}
		return page.Good("The message is being answered again."), back, err
	case "lower":
		level, err := core.ParseTrust(value)
		if err == nil {
			err = p.o.Acts.Lower(ctx, id, level, by)
		}
		return page.Good("Every turn there is at " + level.String() + " at most from now on."), back, err
	case "delete":
		err := p.o.Acts.Delete(ctx, id, by)
		if err == nil {
			back = chatsPath
		}
		return page.Good("The conversation is in the trash for 30 days."), back, err
	case "archive":
		c.Archived, saidIt = &yes, "Archived. The next message there takes it out of the archive."
	case "unarchive":
		c.Archived, saidIt = &no, "It is among the others again."
	case "rename":
		c.Title, saidIt = &value, "Renamed."
	case "tag":
		c.AddTags, saidIt = []string{value}, "Tagged."
	case "untag":
		c.DropTags, saidIt = []string{value}, "The tag is taken off."
	case "model":
		d, err := p.o.Chats.Detail(ctx, id)
		var known []string
		if err == nil {
			known, err = p.o.Models(ctx, d.Session)
		}
		if err == nil && value != "" && !slices.Contains(known, value) {
			err = core.Errorf(core.Invalid, "the model %s can’t be chosen for this conversation; there is %s", core.CutRunes(value, 60), cmp.Or(strings.Join(known, ", "), "none"))
		}
		if err != nil {
			return page.Flash{}, back, err
		}
		c.Model, saidIt = &value, cmp.Or(value, "The model of chat, agent or settings")+" answers there from the next turn on."
	case "context":
		paths, said, err := p.contextOf(r, id, value)
		if err != nil {
			return page.Flash{}, back, err
		}
		c.SetContexts, saidIt = &paths, said
	case "log":
		c, saidIt = session.ActivityChange(value == "on"), "It is kept out of the log from now on."
		if value == "on" {
			saidIt = "It is logged in the vault from now on."
		}
	case "project":
		c.Project, saidIt = &value, "It belongs to the project from now on."
		if value == "" {
			saidIt = "It belongs to no project from now on."
		}
	case "agent":
		c.AgentType, saidIt = &value, cmp.Or(value, "The default agent")+" answers there from the next turn on."
	default:
		return page.Flash{}, back, core.Errorf(core.NotFound, "there is no such thing to do with a conversation")
	}
	return page.Good(saidIt), back, p.o.Acts.Update(ctx, id, c, by)
}

// contextOf returns the directories and files that a conversation is about once the saved context is
// chosen for it, and what to say; "" is no context.
func (p *Pages) contextOf(r *http.Request, id, name string) (paths []string, said string, err error) {
	if name == "" {
		return nil, "It is about no folder or file from the next turn on.", nil
	}
	d, err := p.o.Chats.Detail(r.Context(), id)
	if err != nil {
		return nil, "", err
	}
	who, _ := page.Principal(r)
	paths, left, err := p.links.ContextPaths(who, name, d.TrustLevel, d.User)
	said = "It is about " + name + " from the next turn on."
	if left > 0 {
		said += " " + page.Count(left, "path was", "paths were") + " left out: this conversation may not read them."
	}
	return paths, said, err
}
