package doctor

import (
	"testing"

	"gatehouse/core/sandbox"
)

func TestDoctorReportsWhetherTheGatewaysOwnFilesAreHidden(t *testing.T) {
	box := func(p *Subject) {
		p.Sandbox = func() []sandbox.Backend {
			return []sandbox.Backend{{Name: "bubblewrap", Works: true, Text: "isolates commands"}}
		}
	}
	sick(t, "sandbox", OK, "own files: hidden", func(p *Subject) {
		box(p)
		p.Veil = func() sandbox.Backend {
			return sandbox.Backend{Name: sandbox.VeilName, Works: true, Text: "hidden from commands"}
		}
	})
	sick(t, "sandbox", Warn, "own files: not hidden", func(p *Subject) {
		box(p)
		p.Veil = func() sandbox.Backend {
			return sandbox.Backend{Name: sandbox.VeilName, Text: "not hidden: no bwrap", Fix: "install it"}
		}
	})
	sick(t, "sandbox", OK, "not hidden", func(p *Subject) { p.Config.Sandbox = "none" })
}
