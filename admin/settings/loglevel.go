package settings

import (
	"net/http"
	"slices"
	"strings"

	"gatehouse/admin/page"
	"gatehouse/core"
)

// logLevel is the setting of the log, which has a form of its own.
const logLevel = "LOG_LEVEL"

var levels = []string{"debug", "info", "warn", "error"}

// logPart is how much the log states.
type logPart struct {
	Level  string
	Levels []string
	FromUs bool // it was set here
}

func logOf(all []Setting) logPart {
	l := logPart{Levels: levels}
	for _, s := range all {
		if strings.HasSuffix(s.Name, logLevel) {
			l.Level, l.FromUs = s.Value, s.Source == fromPanel
		}
	}
	return l
}

func (p *valuePages) setLogLevel(r *http.Request, by core.Actor) (page.Flash, string, error) {
	level, back := r.PostFormValue("level"), pathOf(secVariables)
	if level != "" && !slices.Contains(levels, level) {
		return page.Flash{}, back, core.Errorf(core.Invalid, "the level is debug, info, warn or error")
	}
	if level == "" {
		return page.Good("The log is at its configured level again."), back, p.o.Settings.SetLogLevel(r.Context(), "", by)
	}
	return page.Good("The log is at " + level + " from now on, also after a restart."), back, p.o.Settings.SetLogLevel(r.Context(), level, by)
}
