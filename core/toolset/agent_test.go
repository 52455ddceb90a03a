package toolset

import (
	"encoding/json"
	"slices"
	"testing"

	"gatehouse/core/agent"
	"gatehouse/core/orchestrator"
	"gatehouse/core/permission"
	"gatehouse/core/session"
)

// What an agent's file permits replaces the owner's defaults and narrows a guest's.
func TestPermissionsOfAnAgentAreTheOwnersAndOnlyNarrowAGuests(t *testing.T) {
	t.Parallel()
	all := permission.Commands{All: true}
	own := []string{"Guests/7/**"}
	for _, c := range []struct {
		name     string
		who      *agent.Permissions
		metadata string
		admin    bool
		want     permission.Configured
	}{
		{"owner, silent agent", nil, "", true, permission.ForOwner()},
		{"owner", &agent.Permissions{Write: []string{"Notes/**"}}, "", true, permission.Configured{Write: []string{"Notes/**"}}},
		{"owner, nothing", &agent.Permissions{Write: []string{}}, "", true, permission.Configured{Write: []string{}}},
		{"owner, all", &agent.Permissions{Read: []string{"**"}, Bash: &agent.Commands{All: true}}, "", true, permission.Configured{Read: []string{"**"}, Write: []string{"Chat/artifacts/*"}, Bash: all}},
		{"the session stands before", &agent.Permissions{Write: []string{"**"}, Bash: &agent.Commands{All: true}}, `{"permissions":{"write":["A/*"],"bash":false}}`, true, permission.Configured{Write: []string{"A/*"}}},
		{"a broken session opens nothing", &agent.Permissions{Write: []string{"**"}}, `{`, true, permission.Configured{}},
		{"guest, silent agent", nil, "", false, permission.ForGuest(7)},
		{"guest is not raised", &agent.Permissions{Read: []string{"**"}, Write: []string{"**"}, Bash: &agent.Commands{All: true}}, "", false, permission.ForGuest(7)},
		{"guest, other folders", &agent.Permissions{Write: []string{"Notes/**", "Guests/8/**"}, Bash: &agent.Commands{Patterns: []string{"*"}}}, "", false, permission.Configured{Read: own}},
		{"guest, part of the own", &agent.Permissions{Write: []string{"Guests/7/notes/*"}}, "", false, permission.Configured{Read: own, Write: []string{"Guests/7/notes/*"}}},
		{"guest, all guests", &agent.Permissions{Read: []string{}, Write: []string{"Guests/**"}}, "", false, permission.Configured{Write: own}},
		{"guest, another's by a glob", &agent.Permissions{Write: []string{"Guests/*/x", "{Guests/7,Notes}/**"}}, "", false, permission.Configured{Read: own}},
		{"guest, commands", &agent.Permissions{Bash: &agent.Commands{Patterns: []string{"ls"}}}, `{"permissions":{"bash":["ls","cat *"]}}`, false, permission.Configured{Read: own, Write: own, Bash: permission.Commands{Patterns: []string{"ls"}}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			turn := &orchestrator.Turn{User: 7, Admin: c.admin, Session: session.Session{Metadata: json.RawMessage(c.metadata)}}
			got := configured(turn, agent.Agent{Permissions: c.who})
			for _, pair := range [][2][]string{{got.Read, c.want.Read}, {got.Write, c.want.Write}, {got.Bash.Patterns, c.want.Bash.Patterns}} {
				if !slices.Equal(pair[0], pair[1]) {
					t.Errorf("%+v, want %+v", got, c.want)
				}
			}
			if got.Bash.All != c.want.Bash.All {
				t.Errorf("%+v, want %+v", got, c.want)
			}
		})
	}
}
