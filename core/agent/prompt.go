package agent

import (
	"context"
	"path"
	"slices"
	"strings"

	"gatehouse/core"
)

// Bounds of a prompt.
const (
	maxFileTokens = 10_000 // of all context files together
	bytesPerToken = 4      // the estimate used for all budgets
	maxContext    = 20     // other people's lines, the newest
	maxLineBytes  = 2000   // of one such line
)

// names of the files that a folder speaks to agents with.
var names = [...]string{"CLAUDE.md", "AGENTS.md"}

// A PromptInput is what a system prompt is made for.
type PromptInput struct {
	Agent  Agent
	Custom string // an explicit prompt: replaces everything
	// MayRead is the Read tool's check for the turn's sender, by name in the
	// vault, links resolved. Nil reads nothing.
	MayRead          func(name string) bool
	WorkingDirectory string // relative to the vault; "" and "." are the vault; outside: no files
	Sender           string // name, hostile text; "" leaves the sender out
	Trust            core.Trust
	Group            bool
	Missing          []string // tools that are not offered, and why, in plain words
	Context          []Quoted // what others said in the group before, oldest first
}

// Prompt is the system prompt and a true account of what is in it (Model is
// the caller's to fill). An explicit prompt replaces everything; else it is
// the agent's text, the context files from the vault down to the working
// directory as far as the sender may read them and the budget of 10,000 tokens
// reaches (the nearest first), who is asking, and what others said.
func (a *Agents) Prompt(ctx context.Context, in PromptInput) (string, core.PromptMetadata, error) {
	if in.Agent.Name == "" {
		in.Agent = Default("", "")
	}
	about := core.PromptMetadata{PromptSource: "custom", ContextFilePaths: []string{}, AgentName: in.Agent.Name, AvailableAgents: a.Names()}
	if in.Custom != "" {
		return in.Custom, about, nil
	}
	if err := ctx.Err(); err != nil {
		return "", about, err
	}
	about.PromptSource = "default"
	parts, err := a.context(in)
	if err != nil {
		return "", about, err
	}
	var b strings.Builder
	b.WriteString(in.Agent.Prompt)
	used := 0
	for _, p := range parts {
		about.ContextTruncated = about.ContextTruncated || p.cut
		if p.text == "" {
			b.WriteString("\n[" + p.name + " was left out: the other files have filled its room]\n")
			continue
		}
		about.PromptSource = "vault"
		about.ContextFilePaths = append(about.ContextFilePaths, p.name)
		used += len(p.text)
		b.WriteString("\n## Instructions from " + p.name + "\n\n" + p.text + "\n")
		if p.cut {
			b.WriteString("[" + p.name + " is longer; the rest was left out]\n")
		}
	}
	about.ContextFiles, about.ContextTokens = len(about.ContextFilePaths), tokens(used)
	in.people(&b)
	return b.String(), about, nil
}

func tokens(n int) int { return (n + bytesPerToken - 1) / bytesPerToken }

// people says who is asking and what others said.
func (in *PromptInput) people(b *strings.Builder) {
	if in.Sender != "" {
		b.WriteString("\nYou are talking to " + quoteName(SafeName(in.Sender)) + ", trust level " + in.Trust.String())
		if in.Group {
			b.WriteString(", in a group where others read along")
		}
		b.WriteString(".\n")
	}
	if len(in.Missing) > 0 {
		b.WriteString("\nNot available in this conversation (say so when it matters; do not try to get round it):\n")
		for _, m := range in.Missing {
			b.WriteString("- " + m + "\n")
		}
	}
	if len(in.Context) == 0 {
		return
	}
	b.WriteString("\nSaid in the group before, by others, not to you:\n")
	for _, q := range in.Context[max(0, len(in.Context)-maxContext):] {
		q.Text = core.CutRunes(q.Text, maxLineBytes)
		b.WriteString(q.String())
	}
}

// A part is what a prompt holds of one file; without text it found no room.
type part struct {
	name string
	text string
	cut  bool
}

// context reads the files, nearest first, and returns them outermost first.
func (a *Agents) context(in PromptInput) ([]part, error) {
	if in.MayRead == nil {
		return nil, nil
	}
	at, err := a.vault.Dir(in.WorkingDirectory)
	if err != nil || !at.Inside {
		return nil, err
	}
	var parts []part
	room := maxFileTokens * bytesPerToken
	seen := map[string]bool{}
	for dir := at.Rel; ; dir = path.Dir(dir) {
		for i := len(names) - 1; i >= 0; i-- {
			p, ok, err := a.part(path.Join(dir, names[i]), room, in.MayRead, seen)
			if err != nil {
				return nil, err
			}
			if ok {
				parts = append(parts, p)
				room -= len(p.text)
			}
		}
		if dir == "." {
			break
		}
	}
	slices.Reverse(parts)
	return parts, nil
}
