package main

import (
	"encoding/json"
	"testing"

	"gatehouse/configs"
	"gatehouse/core"
	"gatehouse/core/permission"
	"gatehouse/core/sandbox"
	"gatehouse/core/store/storetest"
	"gatehouse/core/tool"
)

// TestWithoutAVeilACommandThatNamesTheGatewaysOwnFilesIsAsked: nothing hides the
// database from a shell at full trust then.
func TestWithoutAVeilACommandThatNamesTheGatewaysOwnFilesIsAsked(t *testing.T) {
	storetest.SQLiteOnly(t, "the database is one of the files")
	w := newWorld(t, func(cfg *configs.Config) { cfg.Sandbox = sandbox.None })
	if w.app.veil() != nil {
		t.Fatal("there is a veil")
	}
	p := permission.Profile{User: core.Operator, Trust: core.Full, Session: "s", Owner: true, Auto: true}
	bash := tool.Tool{Name: "Bash", Kind: tool.Shell}
	for command, rule := range map[string]string{
		"cat " + w.cfg.DatabasePath(): permission.RuleSecretNamed,
		"ls -R " + w.app.runtime:      permission.RuleSecretNamed,
		"echo hello":                  permission.RuleTrustMode,
	} {
		input, err := json.Marshal(map[string]string{"command": command})
		if err != nil {
			t.Fatal(err)
		}
		d, err := w.app.guard.Decide(t.Context(), w.app.db, p, bash, input, tool.Access{Command: command, Dir: w.cfg.VaultPath})
		if err != nil || d.Rule != rule {
			t.Errorf("%s: %s, want %s (%v)", command, d.Rule, rule, err)
		}
	}
}
