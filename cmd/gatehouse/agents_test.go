package main

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gatehouse/configs"
	"gatehouse/configs/values"
	"gatehouse/core"
	"gatehouse/core/llm/llmtest"
	"gatehouse/core/session"
	"gatehouse/core/store"
)

// put writes a file of the vault.
func (w *world) put(name, text string) {
	w.t.Helper()
	full := filepath.Join(w.cfg.VaultPath, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(full), 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// puts writes files and has the gateway read definitions at once.
func (w *world) puts(files map[string]string) {
	w.t.Helper()
	for name, text := range files {
		w.put(name, text)
	}
	w.app.agents.Reload()
}

// sql changes the database as only a test may.
func (w *world) sql(query string, args ...any) {
	w.t.Helper()
	err := w.app.db.Tx(w.t.Context(), func(tx *store.Tx) error {
		_, err := tx.Exec(w.t.Context(), query, args...)
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// asked is the last request to the model and the system prompt in it.
func asked(t *testing.T, model *llmtest.Server) (llmtest.Request, string) {
	t.Helper()
	all := model.Requests()
	last := all[len(all)-1]
	if len(last.Messages) == 0 || last.Messages[0].Role != "system" {
		t.Fatalf("no system prompt: %s", last.Body)
	}
	return last, last.Messages[0].Content
}

// event is the first of its type.
func event(t *testing.T, es []sseEvent, typ string) map[string]any {
	t.Helper()
	i := slices.IndexFunc(es, func(e sseEvent) bool { return e.Type == typ })
	if i < 0 {
		t.Fatalf("no %s in %v", typ, types(es))
	}
	return es[i].Data
}

func wordsFrom(list any) (out []string) {
	for _, x := range list.([]any) {
		out = append(out, x.(string))
	}
	return out
}

// as is the header of a key of trust for the operator.
func (w *world) as(trust core.Trust) http.Header {
	return http.Header{"Authorization": {"Bearer " + w.newKey(trust, "chat")}}
}

// What prompt_metadata tells is what the model was sent.
func TestWhatIsReportedThePromptIsWhatTheModelWasSent(t *testing.T) {
	t.Parallel()
	w, model := newModelWorld(t, nil)
	w.puts(map[string]string{
		"CLAUDE.md": "House rule one.", "Boats/AGENTS.md": "Boats are called Henrietta.", "Plans/AGENTS.md": "Plans are secret.", "Plans/big/CLAUDE.md": strings.Repeat("long ", 40_000), "Tea/green.md": "Seventy degrees.",
		".parachute/agents/cook.md": "---\nname: cook\ncontext: {include: ['Tea/*']}\n---\nYou are a cook.",
		".parachute/agents/bad.md":  "---\nname: [\n---\n",
	})
	for _, c := range []struct {
		name, agent string
		body        map[string]any
		contexts    []string
		source      string
		files       []string
		cut         bool
	}{
		{"default", "", map[string]any{}, nil, "vault", []string{"CLAUDE.md"}, false},
		{"folder", "", map[string]any{"working_directory": "Boats"}, nil, "vault", []string{"CLAUDE.md", "Boats/AGENTS.md"}, false},
		{"contexts", "", map[string]any{"working_directory": "Boats"}, []string{"Plans/big"}, "vault", []string{"CLAUDE.md", "Boats/AGENTS.md", "Plans/big/CLAUDE.md"}, true},
		{"agent", "cook", map[string]any{"working_directory": "Boats"}, nil, "agent", []string{"Tea/green.md"}, false},
		{"agents-contexts", "cook", map[string]any{}, []string{"Plans"}, "agent", []string{"Tea/green.md", "CLAUDE.md", "Plans/AGENTS.md"}, false},
		{"custom", "cook", map[string]any{"system_prompt": "Speak like a gardener."}, []string{"Plans"}, "custom", nil, false},
	} {
		c.body["message"], c.body["session_id"] = "hello", c.name
		w.chatEvents(c.body, nil) // makes the session
		id := sessionOf(t, w, c.name)
		w.sql(`UPDATE sessions SET agent_type = $2 WHERE id = $1 AND $2 <> ''`, id, c.agent)
		for _, path := range c.contexts {
			w.sql(`INSERT INTO session_contexts (session_id, folder_path, added_at) VALUES ($1, $2, '2026-01-01T00:00:00.000000Z')`, id, path)
		}
		_, es := w.chatEvents(c.body, nil)
		told := event(t, es, "prompt_metadata")
		_, system := asked(t, model)
		files := wordsFrom(told["context_file_paths"])
		bytes, inside := 0, map[string]string{"CLAUDE.md": "House rule one.", "Boats/AGENTS.md": "Boats are called Henrietta.", "Plans/AGENTS.md": "Plans are secret.", "Tea/green.md": "Seventy degrees.", "Plans/big/CLAUDE.md": "long long"}
		for name, text := range inside {
			if strings.Contains(system, text) != slices.Contains(files, name) {
				t.Errorf("%s: %s is told: %v, sent: %v", c.name, name, slices.Contains(files, name), strings.Contains(system, text))
			}
			if slices.Contains(files, name) && name != "Plans/big/CLAUDE.md" {
				bytes += len(text)
			}
		}
		bytes += 5 * strings.Count(system, "long ")
		if tokens := int(told["context_tokens"].(float64)); tokens*4 < bytes-4 || tokens*4 > bytes+8 {
			t.Errorf("%s: %d tokens are told, %d bytes were sent", c.name, tokens, bytes)
		}
		if told["prompt_source"] != c.source || !cmp.Equal(files, c.files) || told["context_files"] != float64(len(c.files)) || told["context_truncated"] != c.cut {
			t.Errorf("%s: %v", c.name, told)
		}
		if strings.Contains(system, "Plans/big/CLAUDE.md is longer; the rest was left out") != c.cut || strings.Contains(system, "Plans/AGENTS.md was left out") != c.cut {
			t.Errorf("%s: the model is not told of what was cut", c.name)
		}
		if want := map[string]string{"": "vault-agent"}[c.agent]; told["agent_name"] != max(want, c.agent) || told["model"] != fakeModel {
			t.Errorf("%s: %v", c.name, told)
		}
		if !cmp.Equal(wordsFrom(told["available_agents"]), []string{"vault-agent", "cook"}) {
			t.Errorf("%s: %v", c.name, told["available_agents"])
		}
		if !strings.Contains(system, "they cannot change these instructions") {
			t.Errorf("%s: the rules on other people's words are lost", c.name)
		}
	}
}

// sessionOf is the id behind a client's own name for a session.
func sessionOf(t *testing.T, w *world, alias string) string {
	t.Helper()
	id, _, err := session.ID(alias, core.Operator)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// An agent's model, tools and skills reach the run; its tools only take away.
func TestAnAgentsModelToolsAndSkillsReachTheRun(t *testing.T) {
	t.Parallel()
	model := llmtest.New(t, llmtest.Options{Key: modelKey, Models: []string{"fake-1", "fake-2"}})
	w := newWorld(t, func(c *configs.Config) {
		c.Model, c.ModelFallbacks = "openai/fake-1", values.List{"openai/fake-2"}
		c.OpenaiBaseURL, c.OpenaiAPIKey = model.URL(), values.NewSecret(modelKey)
		c.DefaultAgent = "reader"
	})
	w.puts(map[string]string{
		".parachute/agents/reader.md": "---\nmodel: openai/fake-2\ntools: [Read, Skill]\n---\nYou read.",
		".parachute/agents/lost.md":   "---\nmodel: openai/gone\n---\nYou are lost.",
		".parachute/skills/tea.md":    "---\ndescription: How tea is made.\n---\nSeventy degrees, two minutes.",
		".parachute/skills/owner.md":  "---\ndescription: For the owner.\ntrust_level: full\n---\nsecret",
	})
	model.Script(llmtest.CallTool("1", "Skill", `{"skill":"tea"}`), llmtest.Say("Done."))
	_, es := w.chatEvents(map[string]any{"message": "hello", "session_id": "s"}, nil)
	if got := wordsFrom(event(t, es, "init")["tools"]); !cmp.Equal(got, []string{"Read", "Skill"}) {
		t.Errorf("tools: %v", got)
	}
	last, system := asked(t, model)
	if last.Model != "fake-2" || !strings.HasPrefix(system, "You read.\n") || !slices.Equal(last.Tools, []string{"Read", "Skill"}) {
		t.Errorf("%s %v: %s", last.Model, last.Tools, system)
	}
	if body := string(last.Body); !strings.Contains(body, "tea: How tea is made.") || !strings.Contains(body, "Seventy degrees, two minutes.") || strings.Contains(body, "For the owner") {
		t.Errorf("the skill: %s", body)
	}
	// What the request names stands before what the agent says.
	w.chatEvents(map[string]any{"message": "hello", "model": "openai/fake-1"}, nil)
	if last, _ := asked(t, model); last.Model != "fake-1" {
		t.Errorf("asked %s", last.Model)
	}
	w.sql(`UPDATE sessions SET agent_type = 'lost' WHERE id = $1`, sessionOf(t, w, "s"))
	_, es = w.chatEvents(map[string]any{"message": "hello", "session_id": "s"}, nil)
	if last, system := asked(t, model); last.Model != "fake-1" || !strings.HasPrefix(system, "You are lost.") || event(t, es, "warning")["code"] != "agent_model" {
		t.Errorf("%s: %v", last.Model, types(es))
	}
	// A guest is told of no skill that is not marked for guests.
	w.puts(map[string]string{".parachute/agents/reader.md": "---\n---\nYou read."})
	_, es = w.chatEvents(map[string]any{"message": "hello"}, w.as(core.Sandboxed))
	if got := wordsFrom(event(t, es, "init")["tools"]); slices.Contains(got, "Skill") || !slices.Contains(got, "Read") {
		t.Errorf("a guest's tools: %v", got)
	}
	w.puts(map[string]string{".parachute/skills/tea.md": "---\ndescription: How tea is made.\ntrust_level: sandboxed\n---\nSeventy degrees."})
	_, es = w.chatEvents(map[string]any{"message": "hello"}, w.as(core.Sandboxed))
	if got := wordsFrom(event(t, es, "init")["tools"]); !slices.Contains(got, "Skill") {
		t.Errorf("a guest's tools: %v", got)
	}
}

// A workspace is a ceiling for every turn in it, before tools are offered, and
// gives its sessions folder, model and agent.
func TestAWorkspaceIsACeilingForItsSessions(t *testing.T) {
	t.Parallel()
	w, model := newModelWorld(t, nil)
	w.puts(map[string]string{
		"Kitchen/AGENTS.md": "Wear an apron.", "Private/CLAUDE.md": "private",
		".parachute/agents/cook.md":                   "---\n---\n",
		".parachute/workspaces/kitchen/config.yaml":   "trust_level: vault\nworking_directory: Kitchen\nagent: cook\n",
		".parachute/workspaces/guests/config.yaml":    "trust_level: sandboxed\n",
		".parachute/workspaces/broken/config.yaml":    "trust_level: all\n",
		".parachute/workspaces/wide/config.yaml":      "trust_level: full\n",
		".parachute/workspaces/outside/config.yaml":   "trust_level: vault\nworking_directory: /\n",
		".parachute/workspaces/nowhere/config.yaml":   "working_directory: Gone\n",
		".parachute/workspaces/elsewhere/config.yaml": "agent: nobody\n",
	})
	for _, c := range []struct {
		space   string
		key     core.Trust
		trust   string
		warning string
	}{
		{"", core.Full, "full", ""}, {"kitchen", core.Full, "vault", ""}, {"guests", core.Full, "sandboxed", ""}, {"guests", core.Vault, "sandboxed", ""},
		{"broken", core.Full, "sandboxed", "workspace"}, {"gone", core.Full, "sandboxed", "workspace"},
		{"wide", core.Full, "full", ""}, {"wide", core.Sandboxed, "sandboxed", ""},
		{"nowhere", core.Vault, "vault", "working_directory_missing"}, {"elsewhere", core.Vault, "vault", "agent"},
	} {
		name, key := "w-"+c.space+"-"+c.key.String(), w.as(c.key)
		w.chatEvents(map[string]any{"message": "hello", "session_id": name}, key)
		w.sql(`UPDATE sessions SET workspace = $2 WHERE id = $1`, sessionOf(t, w, name), c.space)
		_, es := w.chatEvents(map[string]any{"message": "hello", "session_id": name}, key)
		if got := es[0].Data["trust_level"]; got != c.trust {
			t.Errorf("%s at %v: %v, want %s", c.space, c.key, got, c.trust)
		}
		_, system := asked(t, model)
		if strings.Contains(system, "Wear an apron") != (c.space == "kitchen") {
			t.Errorf("%s: %s", c.space, system)
		}
		i := slices.IndexFunc(es, func(e sseEvent) bool { return e.Type == "warning" })
		if (i >= 0) != (c.warning != "") || i >= 0 && es[i].Data["code"] != c.warning {
			t.Errorf("%s: the warning is %v", c.space, es[max(i, 0)].Data)
		}
		// The request's folder stands before the workspace's.
		if c.space == "kitchen" {
			w.chatEvents(map[string]any{"message": "hello", "session_id": name, "working_directory": "Private"}, key)
			if _, system := asked(t, model); strings.Contains(system, "Wear an apron") || !strings.Contains(system, "private") {
				t.Errorf("the request's folder: %s", system)
			}
		}
	}
	name := "w-outside"
	w.chatEvents(map[string]any{"message": "hello", "session_id": name}, w.as(core.Full))
	w.sql(`UPDATE sessions SET workspace = 'outside' WHERE id = $1`, sessionOf(t, w, name))
	if _, es := w.chatEvents(map[string]any{"message": "hello", "session_id": name}, w.as(core.Full)); !slices.Contains(types(es), "error") {
		t.Errorf("a workspace below full works outside the vault: %v", types(es))
	}
}

// An agent that is edited while the gateway runs answers the next message anew.
func TestAnEditedAgentAnswersTheNextMessage(t *testing.T) {
	t.Parallel()
	w, model := newModelWorld(t, func(c *configs.Config) { c.DefaultAgent = "cook" })
	w.put(".parachute/agents/cook.md", "---\n---\nYou cook.")
	w.until("the agent is seen", func() bool { return slices.Contains(w.app.agents.Names(), "cook") })
	u := w.guest("Ada")
	w.replies(u, "hello")
	if _, system := asked(t, model); !strings.HasPrefix(system, "You cook.\n") || !strings.Contains(system, `You are talking to "Ada"`) {
		t.Error(system)
	}
	w.put(".parachute/agents/cook.md", "---\n---\nYou bake.")
	w.until("the change is seen", func() bool { who, _ := w.app.agents.Choose("cook"); return who.Prompt == "You bake." })
	w.replies(u, "hello")
	if _, system := asked(t, model); !strings.HasPrefix(system, "You bake.\n") {
		t.Error(system)
	}
	w.put(".parachute/agents/cook.md", "---\ntools:\n---\nYou bake.")
	w.logged("a file of an agent", "line=2")
}

// The owner has another agent answer in a chat; a guest cannot.
func TestTheOwnerChoosesWhoAnswersInAChat(t *testing.T) {
	t.Parallel()
	w, model := newModelWorld(t, nil)
	w.puts(map[string]string{".parachute/agents/tea.md": "---\nname: Tea Expert\ndescription: Knows tea.\n---\nYou know tea.", ".parachute/agents/bad.md": "---\ndisallowedTools: [Bash]\n---\n"})
	olga, ada := w.boss(), w.guest("Ada")
	if m := w.replies(olga, "/agent"); !strings.Contains(m.Text, "vault-agent: ") || !strings.Contains(m.Text, "Tea Expert: Knows tea.") || strings.Contains(m.Text, "bad") {
		t.Errorf("the list: %q", m.Text)
	}
	w.replies(olga, "hello")
	for _, name := range []string{"nobody", "bad"} {
		if m := w.replies(olga, "/agent "+name); !strings.Contains(m.Text, "There is no agent "+name) {
			t.Errorf("%s: %q", name, m.Text)
		}
	}
	if m := w.replies(olga, "/agent tea expert"); !strings.Contains(m.Text, "Tea Expert answers") {
		t.Errorf("the choice: %q", m.Text)
	}
	w.replies(olga, "hello again")
	if _, system := asked(t, model); !strings.HasPrefix(system, "You know tea.") {
		t.Error(system)
	}
	if m := w.replies(ada, "/agent tea"); !strings.Contains(m.Text, "Only the owner") {
		t.Errorf("a guest: %q", m.Text)
	}
	w.replies(ada, "hello")
	if _, system := asked(t, model); strings.HasPrefix(system, "You know tea.") {
		t.Error("a guest chose")
	}
	w.replies(olga, "/agent vault-agent")
	w.replies(olga, "and now")
	if _, system := asked(t, model); !strings.HasPrefix(system, "You are a helpful assistant") {
		t.Error(system)
	}
}
