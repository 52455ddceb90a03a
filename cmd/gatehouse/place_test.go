package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gatehouse/configs"
	"gatehouse/core"
)

// toolResults are the results of a run's calls, by the tool, the last of each.
func toolResults(es []sseEvent) map[string]string {
	tools, results := map[any]string{}, map[string]string{}
	for _, e := range es {
		switch e.Type {
		case "tool_use_start":
			tools[e.Data["id"]] = fmt.Sprint(e.Data["name"])
		case "tool_result":
			results[tools[e.Data["tool_use_id"]]] = fmt.Sprint(e.Data["result"])
		}
	}
	return results
}

const everyTool = `use Write {"file_path":"plan.md","content":"Buy tea.\n"}
use Edit {"file_path":"plan.md","old_string":"tea","new_string":"milk"}
use Glob {"pattern":"*.md"}
use Grep {"pattern":"Buy"}
use Read {"file_path":"plan.md"}
use Bash {"command":"pwd; cat plan.md"}`

// A turn has one working directory: relative names of all tools, the start of
// commands and what the API reports are the same folder.
func TestToolsAndCommandsHaveOneWorkingDirectory(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *configs.Config) { hasty(c); c.GuestRead = []string{"Kitchen/**"} })
	w.puts(map[string]string{
		"Kitchen/plan.md": "Buy salt.\n", ".parachute/workspaces/kitchen/config.yaml": "working_directory: Kitchen\n",
	})
	for _, c := range []struct {
		trust     core.Trust
		workspace string
		want      string
	}{
		{core.Sandboxed, "", "Guests/1"}, {core.Vault, "", ""}, {core.Vault, "kitchen", "Kitchen"}, {core.Sandboxed, "kitchen", "Kitchen"},
	} {
		key := w.as(c.trust)
		name := "place-" + c.trust.String() + c.workspace
		w.chatEvents(map[string]any{"message": "hello", "session_id": name}, key)
		w.sql(`UPDATE sessions SET workspace = $2 WHERE id = $1`, sessionOf(t, w, name), c.workspace)
		ask := everyTool
		if c.workspace != "" && c.trust == core.Sandboxed { // it may read there and not write
			ask = everyTool[strings.Index(everyTool, "use Glob"):]
		} else if c.workspace != "" {
			w.put("Kitchen/plan.md", "")
			ask = strings.Replace(ask, "use Write", `use Read {"file_path":"plan.md"}`+"\nuse Write", 1)
		}
		_, es := w.chatEvents(map[string]any{"message": ask, "session_id": name}, key)
		if got := es[0].Data["working_directory"]; got != c.want {
			t.Errorf("%s: working_directory is %v, want %q", name, got, c.want)
		}
		got := toolResults(es)
		if strings.TrimSpace(got["Glob"]) != "plan.md" || !slices.Contains(strings.Fields(got["Grep"]), "plan.md") || !strings.Contains(got["Read"], "Buy ") {
			t.Errorf("%s: %v", name, got)
		}
		at := filepath.Join(w.cfg.VaultPath, filepath.FromSlash(c.want))
		text, err := os.ReadFile(filepath.Join(at, "plan.md"))
		if err != nil || w.app.isolated() && got["Bash"] != at+"\n"+string(text) {
			t.Errorf("%s: the command printed %q; the file in %s: %q, %v", name, got["Bash"], at, text, err)
		}
	}
}

// An ask names the file that a call is about from the vault on, wherever the turn works.
func TestAnAskNamesTheResolvedFile(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	ada := w.lend()
	w.puts(map[string]string{"Kitchen/x.md": ""})
	run := w.read(w.open("POST", "/api/chat", map[string]any{"message": `use Write {"file_path":"plan.md","content":"Buy tea.\n"}`, "working_directory": "Kitchen"}, ada.header))
	asked := run.until("permission_request").Data
	if asked["path"] != "Kitchen/plan.md" {
		t.Errorf("the ask names %v", asked["path"])
	}
	if code, body := w.call("POST", "/api/permissions/"+fmt.Sprint(asked["id"])+"/grant", nil); code != 200 {
		t.Fatalf("%d %s", code, body)
	}
	run.until("message_stop")
	if text, err := os.ReadFile(filepath.Join(w.cfg.VaultPath, "Kitchen/plan.md")); err != nil || string(text) != "Buy tea.\n" {
		t.Errorf("%q, %v", text, err)
	}
}
