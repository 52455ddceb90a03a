package people

import (
	"context"
	"fmt"
	"strings"

	"gatehouse/admin/page"
	"gatehouse/core"
)

// A level is one choice of trust and what it means.
type level struct {
	Trust   core.Trust
	Label   string
	Facts   []page.Fact
	Broken  string
	Checked bool
}

// levels returns the two that can be given here; full is never given in chat.
func (p *gatePages) levels(q core.PairingRequest) []level {
	preset := core.Sandboxed
	if p.o.Preset != nil {
		preset = core.Least(core.Vault, max(core.Sandboxed, p.o.Preset(q.Bot, q.Scope)))
	}
	return []level{
		{Trust: core.Sandboxed, Label: "Sandboxed", Checked: preset == core.Sandboxed},
		{Trust: core.Vault, Label: "Vault", Checked: preset == core.Vault},
	}
}

// Answered reports where they would be answered.
func (c requestCard) Answered() string {
	if c.Scope == core.ScopeGroup {
		return "In this one group, when they address " + c.Bot + "; not in direct messages."
	}
	return "In direct messages with " + c.Bot + "; in no group."
}

// preview returns the two levels and what each means; none without a source.
func (p *gatePages) preview(ctx context.Context) (out []level) {
	if p.o.Preview == nil {
		return nil
	}
	for _, trust := range []core.Trust{core.Sandboxed, core.Vault} {
		seen := page.Load(ctx, p.frame, "What they would see", func(ctx context.Context) (core.AccessPreview, error) { return p.o.Preview(ctx, trust) })
		l := level{Trust: trust, Broken: seen.Broken}
		if l.Broken == "" {
			l.Facts = previewFacts(seen.Value)
		}
		out = append(out, l)
	}
	return out
}

// maxToolsNamed bounds the tools that a preview names.
const maxToolsNamed = 16

func previewFacts(v core.AccessPreview) []page.Fact {
	by := v.Agent
	if v.Model != "" {
		by += ", with " + v.Model
	}
	facts := []page.Fact{{What: "Answers them", Is: by}, {What: "Could read", Is: previewReads(v)}}
	tools := "None: conversation only."
	if n := len(v.Tools); n > 0 {
		tools = strings.Join(v.Tools[:min(n, maxToolsNamed)], ", ")
		if n > maxToolsNamed {
			tools += fmt.Sprintf(" and %d more", n-maxToolsNamed)
		}
	}
	facts = append(facts, page.Fact{What: "Tools", Is: tools})
	if len(v.Unasked) > 0 {
		facts = append(facts, page.Fact{What: "Goes on unasked", Is: page.Sentence(strings.Join(v.Unasked, ", "))})
	}
	if len(v.Asks) > 0 {
		facts = append(facts, page.Fact{What: "Asks you first", Is: page.Sentence(strings.Join(v.Asks, ", "))})
	}
	return append(facts, page.Fact{What: "Sees of others", Is: "None: only their own conversations."})
}

// reads returns the files in a sentence.
func previewReads(v core.AccessPreview) string {
	if v.Files == 0 {
		return "No file of yours; a folder of their own."
	}
	n := page.Grouped(int64(v.Files))
	if v.AtLeast {
		n = "at least " + n
	}
	text := n + " files of yours"
	if v.Files == 1 && !v.AtLeast {
		text = "One file of yours"
	}
	if len(v.Examples) > 0 {
		text += ", like " + strings.Join(v.Examples, ", ")
	}
	return page.Sentence(text + "; and a folder of their own")
}
