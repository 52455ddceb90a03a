package chat

import (
	"context"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"gatehouse/connectors/chat/saved"
	"gatehouse/core"
	"gatehouse/core/agent"
	"gatehouse/core/command"
)

// more are the commands of other packages, which the program adds.
var more = []string{"remind", "reminders", "handoff", "project", "agents", "memory", "remember", "forget", "why", "pick"}

// councils are models that a council of several answers for.
type councils struct{ Models }

func (councils) Names(guest bool) []string {
	if guest {
		return nil
	}
	return []string{"council/fast"}
}

// newHelp returns a Chat with every command.
func newHelp() *Chat {
	o := Options{Models: councils{}, Agents: &agent.Agents{}, Saved: saved.Command{Contexts: struct{ saved.Contexts }{}}}
	for _, name := range more {
		o.More = append(o.More, command.Command{Name: name, About: "about " + name, Managers: name == "agents"})
	}
	return New(o)
}

func helpFor(t *testing.T, c *Chat, role core.Role, trust core.Trust, args string) string {
	t.Helper()
	out, err := c.help(t.Context(), command.Request{User: 2, Role: role, Call: command.Call{Trust: trust, In: &core.Inbound{Text: args}}})
	if err != nil {
		t.Fatal(err)
	}
	return out.Text
}

func TestHelpHasEveryCommandOnceUnderAHeadingInOneMessage(t *testing.T) {
	c := newHelp()
	text := helpFor(t, c, core.RoleOwner, core.Vault, "")
	if n := len(utf16.Encode([]rune(text))); n > 1900 { // Discord's messages have 2,000
		t.Errorf("the owner's help has %d characters", n)
	}
	if n := strings.Count(text, "**") / 2; n < 4 || n > 7 {
		t.Errorf("%d headings:\n%s", n, text)
	}
	for _, cmd := range c.commands {
		want := 1
		if slices.Contains([]string{"start", "help", "j"}, cmd.Name) {
			want = 0
		}
		if n := strings.Count(text, "- /"+cmd.Name+": "); n != want {
			t.Errorf("/%s is listed %d times, want %d", cmd.Name, n, want)
		}
	}
	guest := helpFor(t, c, "guest", core.Sandboxed, "")
	for _, name := range []string{"approve", "enable", "trust", "agents"} {
		if strings.Contains(guest, "/"+name+":") {
			t.Errorf("a guest's help has /%s", name)
		}
	}
	if strings.Contains(guest, "Who may use me") || strings.Contains(guest, "What I may do") || !strings.Contains(guest, "/remind:") {
		t.Errorf("a guest's help:\n%s", guest)
	}
}

func TestHelpExplainsOneCommand(t *testing.T) {
	c := newHelp()
	for args, want := range map[string]string{
		"approve":  "/approve K7M2Q9XT vault 7d",
		"/Approve": "`/approve CODE [sandboxed|vault] [7d]`: approve a request",
		"j":        "`/j TEXT`",
		"whoami":   "`/whoami`: your account here",
		"nonsense": "I don't know `/nonsense`",
	} {
		if got := helpFor(t, c, core.RoleOwner, core.Vault, args); !strings.Contains(got, want) {
			t.Errorf("/help %s: %q, want %q", args, got, want)
		}
	}
	if got := helpFor(t, c, "guest", core.Sandboxed, "approve"); !strings.Contains(got, "Only the owner") {
		t.Errorf("a guest asks for the owner's command: %q", got)
	}
	// What takes arguments says which, with an example.
	for _, cmd := range c.commands {
		if cmd.Args == "" || slices.Contains(more, cmd.Name) {
			continue
		}
		if one := helpFor(t, c, core.RoleOwner, core.Vault, cmd.Name); !strings.Contains(one, "`/"+cmd.Name+" ") {
			t.Errorf("/help %s: %q", cmd.Name, one)
		}
	}
}

func TestAWrongArgumentOfASettingIsNamedWithAnExample(t *testing.T) {
	conv := &conversations{}
	tr := &trust{}
	for _, c := range []struct {
		run                  func(context.Context, command.Request) (command.Outcome, error)
		args, named, example string
	}{
		{conv.begin, "kepe", "“kepe”", "`/new keep`"},
		{tr.run, "atuo", "“atuo”", "/trust full 15m"},
		{tr.run, "auto 15m", "“15m”", "a time belongs to `full` alone"},
		{tr.run, "full 9h", "“9h”", "1 minute to 4 hours"},
	} {
		out, err := c.run(t.Context(), command.Request{User: 1, Role: core.RoleOwner, Call: command.Call{In: &core.Inbound{Text: c.args}}})
		if err != nil || !strings.Contains(out.Text, c.named) || !strings.Contains(out.Text, c.example) {
			t.Errorf("%q is answered with %q, %v; want %s and %s", c.args, out.Text, err, c.named, c.example)
		}
	}
	for args, want := range map[string][]string{"valut": {"“valut”", "/enable vault mention 20/60s"}, "20/x": {"“20/x”", "`/enable 20/60s`"}} {
		_, err := parseGroup(args, nil)
		if text := core.TextOf(err); !strings.Contains(text, want[0]) || !strings.Contains(text, want[1]) {
			t.Errorf("/enable %s: %q", args, text)
		}
	}
}
