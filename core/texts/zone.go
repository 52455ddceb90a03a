package texts

import "time"

// Zone returns the name of t's time zone, for Markdown: of the host's zone only the
// short name is known.
func Zone(t time.Time) string {
	name := t.Location().String()
	if t.Location() == time.Local {
		name, _ = t.Zone()
	}
	return Escape(name)
}
