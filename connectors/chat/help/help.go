// Package help is the answer of /help: the commands, by what people want to do with them,
// and what one of them takes.
package help

import (
	"strings"

	"gatehouse/core/command"
	"gatehouse/core/texts"
)

// groups are the headings, and the commands below each. Three need no line: /start, which
// opens the chat, /help itself, and the short name /j.
var groups = [...]struct{ heading, commands string }{
	{"help_head_talk", "new stop status sessions resume search compact handoff"},
	{"help_head_answers", "model accuracy why pick busy project"},
	{"help_head_memory", "remind reminders journal remember memory forget timezone"},
	{"help_head_account", "whoami usage pair link claim"},
	{"help_head_people", "pairing approve deny invite enable disable"},
	{"help_head_owner", "agent agents context trust activity"},
}

// List returns the commands in groups, each with a few words. It is one message on every
// platform. The commands are not styled as code: a tap sends them.
func List(commands []command.Command) string {
	may := map[string]bool{} // at most all commands
	for _, c := range commands {
		may[c.Name] = true
	}
	var b strings.Builder
	b.WriteString(texts.Text("help_begin") + "\n")
	for _, g := range groups {
		first := true
		for _, name := range strings.Fields(g.commands) {
			if !may[name] {
				continue
			}
			if first {
				b.WriteString("\n**" + texts.Text(g.heading) + "**\n")
				first = false
			}
			b.WriteString("- /" + name + ": " + texts.Text("help_"+name) + "\n")
		}
	}
	b.WriteString("\n" + texts.Text("help_end"))
	return b.String()
}

// One returns what a command does and takes.
func One(c command.Command) string {
	line := "`/" + strings.TrimSpace(c.Name+" "+c.Args) + "`: " + c.About
	if c.How != "" {
		line += "\n\n" + c.How
	}
	return line
}
