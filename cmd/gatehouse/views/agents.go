package views

import (
	"slices"

	"gatehouse/core/agent"
	"gatehouse/web/api/turns"
)

// agentsView is core/agent as the API asks it.
type agentsView struct{ of *agent.Agents }

func (v agentsView) Agents() (rows []turns.Agent) {
	for _, x := range v.of.List() {
		rows = append(rows, turns.Agent{Name: x.Name, Path: x.File, Description: x.Description, Model: x.Model})
	}
	return rows
}

// Agent finds by name and by file name; broken ones and those that another
// would answer for are none.
func (v agentsView) Agent(name string) (string, bool) {
	who, warnings := v.of.Choose(name)
	if len(warnings) > 0 || !slices.Contains(v.of.Names(), who.Name) {
		return "", false
	}
	return who.Name, true
}

func (v agentsView) Workspace(slug string) bool {
	return slices.ContainsFunc(v.of.Workspaces(), func(w agent.Workspace) bool { return w.Slug == slug })
}
