package toolset

import (
	"context"
	"slices"
	"strings"

	"gatehouse/core"
	"gatehouse/core/agent"
	"gatehouse/core/orchestrator"
	"gatehouse/core/permission"
	"gatehouse/core/tool"
	"gatehouse/core/tool/skill"
)

// configured returns what a turn may do without approval: as the session states,
// and where it states nothing, as the agent does. The owner writes agents' files,
// so they replace the defaults in the owner's turns; a guest's they only narrow.
func configured(t *orchestrator.Turn, who agent.Agent) permission.Configured {
	if t.Admin {
		return permission.ParseConfigured(t.Session.Metadata, widened(permission.ForOwner(), who.Permissions))
	}
	return narrowed(permission.ParseConfigured(t.Session.Metadata, permission.ForGuest(t.User)), who.Permissions, t.User)
}

func widened(c permission.Configured, p *agent.Permissions) permission.Configured {
	if p == nil {
		return c
	}
	if p.Read != nil {
		c.Read = p.Read
	}
	if p.Write != nil {
		c.Write = p.Write
	}
	if p.Bash != nil {
		c.Bash = permission.Commands(*p.Bash)
	}
	return c
}

func narrowed(c permission.Configured, p *agent.Permissions, user int64) permission.Configured {
	if p == nil {
		return c
	}
	c.Read, c.Write = both(c.Read, p.Read, user), both(c.Write, p.Write, user)
	if p.Bash != nil && !p.Bash.All {
		switch {
		case c.Bash.All:
			c.Bash = permission.Commands(*p.Bash)
		default:
			c.Bash.Patterns = slices.DeleteFunc(slices.Clone(c.Bash.Patterns), func(s string) bool { return !slices.Contains(p.Bash.Patterns, s) })
		}
	}
	return c
}

// both returns the globs that lie within the guest's and within the agent's;
// agents nil: the guest's. A glob that cannot be compared is left out, and the
// owner is asked.
func both(guest, agents []string, user int64) []string {
	if agents == nil {
		return guest
	}
	own := core.GuestDir(user) + "/"
	var out []string
	for _, g := range guest {
		for _, a := range agents {
			switch {
			case a == g, a == "**", a == core.GuestsDir+"/**" && strings.HasPrefix(g, own):
				out = append(out, g)
			case g == own+"**" && strings.HasPrefix(a, own) && !strings.ContainsAny(a[:len(own)], "*?[{"):
				out = append(out, a)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// skillTool returns the tool Skill with the skills of a trust level; false if
// there are none.
func (s *Set) skillTool(trust core.Trust) (tool.Tool, bool) {
	var list []skill.Entry
	for _, x := range s.Agents.Skills(trust) {
		list = append(list, skill.Entry{Name: x.Name, About: x.Description})
	}
	return skill.New(list, func(_ context.Context, t *tool.Turn, name string) (string, error) {
		for _, x := range s.Agents.Skills(t.Trust) {
			if x.Name == name {
				return x.Body, nil
			}
		}
		return "", core.Errorf(core.NotFound, "the skill is not there any more")
	})
}
