package admin_test

import (
	"context"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"strings"
	"testing"
	"time"

	"gatehouse/admin/settings"
	"gatehouse/core"
	"gatehouse/core/agent"
	"gatehouse/core/attach"
	"gatehouse/core/tool/mcp"
	"gatehouse/core/vault"
	"gatehouse/web/auth"
)

var _ settings.Agents = (*agent.Agents)(nil)

const (
	notesFile = ".parachute/agents/notes.md"
	editNotes = "/admin/agents/edit?file=.parachute%2Fagents%2Fnotes.md"
)

const notesText = "---\ndescription: Keeps the allotment’s notes in order\nmodel: anthropic/claude-sonnet-4-5\ntools: [Read, Grep, mcp__calendar]\ntrust_level: vault\n---\nYou keep notes. Be brief.\n"

func (w *world) openVault(t *testing.T) {
	t.Helper()
	v, err := vault.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = v.Close() })
	w.vault, w.agents, w.files = v, agent.New(v, agent.Options{Clock: w.clock}), attach.New(v, w.clock, nil)
}

func (w *world) file(name, text string) {
	if err := w.vault.WriteFile(name, []byte(text)); err != nil {
		panic(err)
	}
	w.agents.Reload()
}

func (w *world) saveAgent(_ context.Context, file, version, text string, by core.Actor) error {
	err := w.agents.Save(file, version, text)
	if err == nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.note(by, "save %s", file)
	}
	return err
}

func (w *world) health() []mcp.Health {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.servers
}

// shelf is what an owner keeps in .parachute and .mcp.json.
func (w *world) shelf() {
	now := w.clock.Now()
	dir := path.Dir(notesFile)
	for name, text := range map[string]string{
		notesFile:                                  notesText,
		dir + "/researcher.md":                     "---\ndescription: Reads much and answers with sources\ntools: []\n---\nYou are a researcher.\n",
		dir + "/broken.md":                         "---\nname: Broken\ntrust_level: everything\n---\n",
		".parachute/skills/weekly.md":              "---\ndescription: Writes the week’s summary every Friday\ntrust_level: vault\n---\nList what happened.\n",
		".parachute/workspaces/garden/config.yaml": "name: The garden\ndescription: Plans and notes for plot 14\nworking_directory: Garden\nagent: notes\ntrust_level: vault\n",
	} {
		w.file(name, text)
	}
	w.servers = []mcp.Health{
		{Name: "calendar", Transport: "stdio", Trust: core.Full, State: mcp.Ready, Since: now.Add(-2 * time.Hour), Tools: 7, Line: 3},
		{Name: "forge", Transport: "http", Trust: core.Vault, State: mcp.Failing, Since: now.Add(-3 * time.Minute), Error: "connection refused", Next: now.Add(40 * time.Second), Line: 9},
		{Name: "weather", State: mcp.Mistaken, Since: now.Add(-time.Hour), Error: "the entry has neither command nor url", Line: 14},
		{Name: "notes", Transport: "stdio", Trust: core.Full, State: mcp.Idle, Since: now.Add(-26 * time.Hour), Tools: 3, Line: 20},
	}
}

func TestThePageAgentsShowsWhoAnswersAndWhichFilesAreBroken(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	s.get("/admin/agents").has(t, "1 agent answers; every file is fine.", "vault-agent", "built in", "None is listed.")
	s.world.full()
	a := s.get("/admin/agents")
	a.has(t, "1 file can’t be used, 2 MCP servers can’t be used.", "<code>.parachute/agents/broken.md</code> line 3", "the trust level is not one of sandboxed, vault, full",
		"Keeps the allotment’s notes in order", "Read, Grep, mcp__calendar", "weekly", "The garden",
		`<span class="pill bad">Failing</span><small dir="auto">connection refused</small><small>Next try in 40 s</small>`, `<span class="pill good">Connected</span>`, "Mistaken entry", `<b class="badge urgent">3<i class="unseen"> not well</i>`)
	a.lacks(t, "everything</") // no value of a broken file is repeated
}

func editForm(a answer) url.Values {
	v := url.Values{"file": {notesFile}}
	if m := regexp.MustCompile(`name="version" value="([^"]*)"`).FindStringSubmatch(a.body); m != nil {
		v.Set("version", m[1])
	}
	return v
}

func (s *site) postForm(path string, form url.Values) answer {
	s.t.Helper()
	form.Set("csrf", s.csrf())
	return s.do("POST", path, form)
}

func TestAnAgentIsEditedWithPreviewAndDiffBeforeItIsSaved(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	s.world.full()
	page := s.get(editNotes)
	page.has(t, "Edit agent", "You keep notes. Be brief.")
	page.lacks(t, `value="save"`) // only what was looked at can be saved
	form := editForm(page)

	form.Set("text", strings.Replace(notesText, "vault\n", "everything\n", 1))
	form.Set("do", "preview")
	s.postForm("/admin/agents/edit", form).has(t, `role="alert"`, "Line 5: the trust level is not one of")
	form.Set("do", "save")
	if a := s.postForm("/admin/agents/edit", form); a.status != http.StatusUnprocessableEntity {
		t.Errorf("saving a broken text: status %d", a.status)
	}

	form.Set("text", strings.Replace(strings.ReplaceAll(notesText, "\n", "\r\n"), "Be brief.", "Be <b>kind</b>.", 1)) // as browsers send it
	form.Set("do", "preview")
	a := s.postForm("/admin/agents/edit", form)
	a.has(t, `<span class="removed">- You keep notes. Be <b>brief</b>.`, `<span class="added">&#43; You keep notes. Be <b>&lt;b&gt;kind&lt;/b&gt;</b>.`, "What it would be", `value="save"`)
	if len(s.world.done()) != 0 {
		t.Fatalf("a preview did %q", s.world.done())
	}
	form.Set("do", "save")
	if a := s.postForm("/admin/agents/edit", form); a.status != http.StatusSeeOther || a.header.Get("Location") != "/admin/agents" {
		t.Fatalf("save: %d to %q\n%s", a.status, a.header.Get("Location"), a.main())
	}
	s.get("/admin/agents").has(t, "is saved. It holds from the next turn on.")
	if now, _ := s.world.agents.Choose("notes"); now.Prompt != "You keep notes. Be <b>kind</b>." {
		t.Errorf("the agent's words are %q", now.Prompt)
	}
	if by := s.world.lastActor(); by != (core.Actor{User: core.Operator, Via: "panel"}) {
		t.Errorf("saved by %+v", by)
	}
	// The version is the old one now: somebody else's change is not written over.
	form.Set("text", notesText)
	if a := s.postForm("/admin/agents/edit", form); a.status != http.StatusConflict || !strings.Contains(a.body, "was changed since you opened it") {
		t.Errorf("saving over another change: status %d", a.status)
	}
}

// An agent does so in the owner's turns, at the owner's trust: with it another admin would have the
// owner's shell.
func TestAnotherAdminChangesNoAgentToDoMoreUnasked(t *testing.T) {
	s := newSite(t, nil, nil)
	s.world.full()
	s.enterAs("nina", auth.RoleAdmin)
	form := editForm(s.get(editNotes))
	form.Set("do", "save")
	form.Set("text", strings.Replace(notesText, "---\n", "---\npermissions:\n  bash: true\n", 1))
	if a := s.postForm("/admin/agents/edit", form); a.status != http.StatusUnprocessableEntity || !strings.Contains(a.body, "nly the owner can change what an agent may do without asking") {
		t.Errorf("nina lets it run commands: %d", a.status)
	}
	form.Set("text", strings.Replace(notesText, "Be brief.", "Be kind.", 1))
	if a := s.postForm("/admin/agents/edit", form); a.status != http.StatusSeeOther {
		t.Errorf("nina changes its prompt: %d", a.status)
	}
	form = editForm(s.get("/admin/agents/edit?kind=agent&name=fresh"))
	form.Set("file", strings.Replace(notesFile, "notes", "fresh", 1))
	form.Set("do", "save")
	form.Set("text", "---\nwrite_permissions: [\"**\"]\n---\n\nYou are new.\n")
	if a := s.postForm("/admin/agents/edit", form); a.status != http.StatusUnprocessableEntity {
		t.Errorf("nina makes one that writes everything: %d", a.status)
	}
	if a, _ := s.world.agents.Choose("notes"); a.Permissions != nil && a.Permissions.Bash != nil {
		t.Errorf("it may %+v", a.Permissions)
	}
}

// In trust mode every tool that the agent offers runs unasked: what limits it is the owner's, too.
func TestAnotherAdminLiftsNoLimitOfAnAgent(t *testing.T) {
	limits := []string{"tools: [Read]\n", "mcpServers: []\n", "trust_level: sandboxed\n"}
	limited := "---\ndescription: Reads\n" + strings.Join(limits, "") + "---\n\nYou read.\n"
	s := newSite(t, nil, nil)
	s.world.full()
	from := "/admin/agents/edit?kind=agent&name=limited"
	save := func(text string) int {
		t.Helper()
		form := editForm(s.get(from))
		form.Set("file", strings.Replace(notesFile, "notes", "limited", 1))
		form.Set("do", "save")
		form.Set("text", text)
		return s.postForm("/admin/agents/edit", form).status
	}
	s.enterAs("nina", auth.RoleAdmin)
	if got := save(limited); got != http.StatusSeeOther {
		t.Fatalf("nina makes one with limits: %d", got)
	}
	from = strings.Replace(editNotes, "notes", "limited", 1)
	for _, limit := range limits {
		if got := save(strings.Replace(limited, limit, "", 1)); got != http.StatusUnprocessableEntity {
			t.Errorf("nina removes %q: %d", limit, got)
		}
	}
	if got := save(strings.Replace(limited, "[Read]", "[Read, Bash]", 1)); got != http.StatusUnprocessableEntity {
		t.Errorf("nina adds a tool: %d", got)
	}
	if got := save(strings.Replace(limited, "You read.", "You read well.", 1)); got != http.StatusSeeOther {
		t.Errorf("nina changes its prompt: %d", got)
	}
}

// Neither a workspace, nor another name, nor a fault opens what another admin may not change itself.
func TestAnotherAdminGetsRoundNoLimitOfAnAgent(t *testing.T) {
	const (
		strict = ".parachute/agents/a.md"
		broken = ".parachute/agents/broken.md"
		space  = ".parachute/workspaces/kitchen/config.yaml"
		closed = "name: Kitchen\ntrust_level: sandboxed\nworking_directory: Food\nagent: strict\n"
	)
	s := newSite(t, nil, nil)
	s.world.file(strict, "---\nname: strict\ntools: []\n---\nYou read.\n")
	s.world.file(broken, "---\ntools: []\ntrust_level: everything\n---\nYou read.\n")
	s.world.file(space, closed)
	s.enterAs("nina", auth.RoleAdmin)
	save := func(what, file, text string, want int) {
		t.Helper()
		form := editForm(s.get("/admin/agents/edit?file=" + url.QueryEscape(file)))
		form.Set("file", file)
		form.Set("do", "save")
		form.Set("text", text)
		if got := s.postForm("/admin/agents/edit", form).status; got != want {
			t.Errorf("nina %s: %d, want %d", what, got, want)
		}
	}
	const no, yes = http.StatusUnprocessableEntity, http.StatusSeeOther
	save("renames an agent", strict, "---\nname: old\ntools: []\n---\nYou read.\n", no)
	save("mends a file with a fault", broken, "---\ndescription: Reads\n---\nYou read.\n", no)
	save("gives another file its name", ".parachute/agents/b.md", "---\nname: Broken\n---\nYou read.\n", no)
	for _, limit := range []string{"trust_level: sandboxed\n", "working_directory: Food\n", "agent: strict\n"} {
		save("removes of a workspace "+limit, space, strings.Replace(closed, limit, "", 1), no)
	}
	save("names a workspace", space, strings.Replace(closed, "Kitchen", "The kitchen", 1), yes)
	save("opens the sessions of a missing workspace", strings.Replace(space, "kitchen", "gone", 1), "name: Gone\n", no)
	save("makes one that is sandboxed", strings.Replace(space, "kitchen", "new", 1), closed, yes)
	save("changes a prompt", strict, "---\nname: strict\ntools: []\n---\nYou read well.\n", yes)
	s.world.file(space, "trust_level: everything\n")
	save("mends a workspace", space, "name: Kitchen\n", no)
	if got := s.world.agents.Role("strict", "").Agent; got.Tools == nil || got.Prompt != "You read well." {
		t.Errorf("strict is %+v", got)
	}
}

// The preview, and the editor of a file that is there, warn as loading the file does.
func TestTheEditorShowsTheWarningsOfLoadingAFile(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	s.world.full()
	form := editForm(s.get(editNotes))
	form.Set("text", "---\ndescription: Old\nmodel: claude-sonnet-4-20250514\ncolour: <b>\n---\nHelp.\n")
	form.Set("do", "preview")
	warnings := []string{"Line 3: ", "it is read as anthropic/NAME", "Line 4: unknown field &#34;colour&#34; is ignored"}
	s.postForm("/admin/agents/edit", form).has(t, append(warnings, "What it would be", `value="save"`)...)
	form.Set("do", "save")
	if a := s.postForm("/admin/agents/edit", form); a.status != http.StatusSeeOther {
		t.Fatalf("save: %d", a.status)
	}
	loaded := s.world.agents.Notes()
	if len(loaded) != 2 {
		t.Fatalf("loading warns of %+v", loaded)
	}
	s.get(editNotes).has(t, warnings...)
	s.get(editNotes+"&view=rendered").has(t, warnings...)
}

func TestTheEditorWritesAgentsSkillsAndWorkspacesAndNothingElse(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	for _, file := range []string{".parachute/bots.yaml", "../agents/x.md", ".parachute/agents/../x.md", ".parachute/agents/.x.md", ".parachute/agents/a/b.md", "/etc/passwd", ".mcp.json", ""} {
		form := url.Values{"file": {file}, "text": {"---\n---\n"}, "do": {"save"}}
		if a := s.postForm("/admin/agents/edit", form); a.status != http.StatusNotFound {
			t.Errorf("%q: status %d, want 404", file, a.status)
		}
	}
	if len(s.world.done()) != 0 {
		t.Errorf("was done: %q", s.world.done())
	}
	s.get("/admin/agents/edit?kind=skill&name=weekly").has(t, "New skill", ".parachute/skills/weekly.md", "When to use this skill")
	s.do("GET", "/admin/agents/edit?kind=agent&name=..%2Fx", nil)
	s.get("/admin/agents").has(t, `class="flash bad"`, "A name is 1 to 64 letters")
	form := url.Values{"file": {".parachute/skills/weekly.md"}, "version": {""}, "text": {"---\ndescription: d\n---\nDo it.\n"}, "do": {"save"}}
	if a := s.postForm("/admin/agents/edit", form); a.status != http.StatusSeeOther {
		t.Fatalf("a new skill: status %d\n%s", a.status, a.main())
	}
	if skills := s.world.agents.AllSkills(); len(skills) != 1 || skills[0].Name != "weekly" {
		t.Errorf("skills: %+v", skills)
	}
}

func TestFilesOfAgentsWithWarningsAreListedAndAnswer(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	s.get("/admin/agents").lacks(t, "Files with warnings")
	s.world.file(".parachute/agents/old.md", "---\nname: Old\nmodel: claude-sonnet-4-20250514\ncolour: red\n---\nhello")
	page := s.get("/admin/agents")
	page.has(t, "Files with warnings", "<code>.parachute/agents/old.md</code> line 4", "unknown field &#34;colour&#34; is ignored", "line 3", "it is read as anthropic/NAME", "<bdi>Old</bdi>", "anthropic/claude-sonnet-4-20250514")
	page.lacks(t, "Invalid files")
}
