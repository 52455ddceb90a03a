package doctor

import (
	"context"

	"gatehouse/core/sandbox"
)

// checkSandbox reports what isolates commands below full trust. Without one the
// gateway works; the tools that need it are not offered.
func checkSandbox(ctx context.Context, p Subject) []Finding {
	const name = "sandbox"
	if p.Config.Sandbox == sandbox.None {
		return []Finding{{name, OK, "switched off: there is no shell below full trust, and at full trust the gateway's own files are not hidden", ""}}
	}
	if p.Sandbox == nil {
		return nil
	}
	var checks []Finding
	for _, b := range p.Sandbox() {
		c := Finding{name, OK, b.Name + ": " + b.Text, ""}
		if !b.Works {
			c.State, c.Fix = Warn, b.Fix
			c.Text += "; there is no shell below full trust"
		}
		checks = append(checks, c)
	}
	if p.Limits != nil {
		if text := p.Limits(ctx); text != "" { // the doctor runs elsewhere: only the gateway knows its own group
			checks = append(checks, Finding{name, OK, "limits: " + text, ""})
		}
	}
	if p.Veil != nil {
		checks = append(checks, checkVeil(p.Veil()))
	}
	return checks
}

// checkVeil reports whether the gateway's own files are hidden from commands at
// full trust.
func checkVeil(b sandbox.Backend) Finding {
	c := Finding{"sandbox", OK, b.Name + ": " + b.Text, ""}
	if !b.Works {
		c.State, c.Fix = Warn, b.Fix
	}
	return c
}
