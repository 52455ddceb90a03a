package main

import (
	"context"
	"fmt"
	"strings"
)

// mostNamed bounds the settings that one check names.
const mostNamed = 6

// doctorPanel tells what was set in the panel, and whether the gateway that
// serves goes by the settings that were examined here.
func doctorPanel(_ context.Context, p doctorPatient) (checks []doctorCheck) {
	s := p.Settled
	if s.Config == nil {
		return nil
	}
	if s.Fault != nil {
		return []doctorCheck{{"panel", doctorWarn, "what was set in the panel can't be read: " + doctorReason(s.Fault), "see what is said of the database"}}
	}
	for _, err := range s.Left {
		checks = append(checks, doctorCheck{"panel", doctorWarn, "something that was set in the panel can't hold, so there it is as configured: " + err.Error(),
			"mend what it needs, or set it anew on the panel's page Settings"})
	}
	for _, words := range s.Changed() {
		checks = append(checks, doctorCheck{Name: "panel", State: doctorOK, Text: words})
	}
	if names := s.Different(); len(names) > 0 {
		more := ""
		if n := len(names) - mostNamed; n > 0 {
			names, more = names[:mostNamed], fmt.Sprintf(" and %d more", n)
		}
		checks = append(checks, doctorCheck{"settings", doctorWarn, "the gateway that serves was started with other settings than these here: " + strings.Join(names, ", ") + more,
			"run doctor with the gateway's own environment (--env-file), or start the gateway again"})
	}
	return checks
}
