package main

import (
	"context"

	"gatehouse/core/sandbox"
)

// doctorSandbox says what isolates commands below full trust. Without one the
// gateway works; the tools that need it are not offered.
func doctorSandbox(ctx context.Context, p doctorPatient) []doctorCheck {
	const name = "sandbox"
	if p.Config.Sandbox == sandbox.None {
		return []doctorCheck{{name, doctorOK, "switched off: there is no shell below full trust, and at full trust the gateway's own files are not hidden", ""}}
	}
	if p.Sandbox == nil {
		return nil
	}
	var checks []doctorCheck
	for _, b := range p.Sandbox() {
		c := doctorCheck{name, doctorOK, b.Name + ": " + b.Text, ""}
		if !b.Works {
			c.State, c.Fix = doctorWarn, b.Fix
			c.Text += "; there is no shell below full trust"
		}
		checks = append(checks, c)
	}
	if p.Limits != nil {
		if text := p.Limits(ctx); text != "" { // the doctor runs elsewhere: only the gateway knows its own group
			checks = append(checks, doctorCheck{name, doctorOK, "limits: " + text, ""})
		}
	}
	if p.Veil != nil {
		checks = append(checks, veilCheck(p.Veil()))
	}
	return checks
}

// veilCheck reports whether the gateway's own files are hidden from commands at
// full trust.
func veilCheck(b sandbox.Backend) doctorCheck {
	c := doctorCheck{"sandbox", doctorOK, b.Name + ": " + b.Text, ""}
	if !b.Works {
		c.State, c.Fix = doctorWarn, b.Fix
	}
	return c
}
