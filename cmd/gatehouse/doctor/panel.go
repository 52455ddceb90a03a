package doctor

import (
	"context"
	"fmt"
	"strings"
)

// mostNamed bounds the settings that one check names.
const mostNamed = 6

// checkPanel reports what was set in the panel, and whether the gateway that
// serves goes by the settings that were examined here.
func checkPanel(_ context.Context, p Subject) (checks []Finding) {
	s := p.Settled
	if s.Config == nil {
		return nil
	}
	if s.Fault != nil {
		return []Finding{{"panel", Warn, "the panel's settings cannot be read: " + Reason(s.Fault), "see the line about the database"}}
	}
	for _, err := range s.Left {
		checks = append(checks, Finding{"panel", Warn, "a value set in the panel is invalid, so the configured one is used: " + err.Error(),
			"fix what it needs, or set it again on the panel's page Settings"})
	}
	for _, words := range s.Changed() {
		checks = append(checks, Finding{Name: "panel", State: OK, Text: words})
	}
	if names := s.Different(); len(names) > 0 {
		more := ""
		if n := len(names) - mostNamed; n > 0 {
			names, more = names[:mostNamed], fmt.Sprintf(" and %d more", n)
		}
		checks = append(checks, Finding{"settings", Warn, "the gateway that serves was started with other settings than these here: " + strings.Join(names, ", ") + more,
			"run doctor with the gateway's own environment (--env-file), or start the gateway again"})
	}
	return checks
}
