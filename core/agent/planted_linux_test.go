package agent_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"gatehouse/core"
	"gatehouse/core/agent"
)

// Least numbers of one race: of the attacker's exchanges, and of our readings.
const (
	swaps = 10_000
	reads = 1_000
)

// race exchanges what a and b refer to again and again in a goroutine while it
// calls read, until both have happened often enough.
func race(t *testing.T, a, b string, read func(n int)) {
	t.Helper()
	var swapped atomic.Int64
	stop, done := make(chan struct{}), make(chan error, 1)
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
			}
			if err := unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE); err != nil {
				done <- err
				return
			}
			swapped.Add(1)
		}
	}()
	defer func() {
		close(stop)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}()
	for n := 0; (n < reads || swapped.Load() < swaps) && len(done) == 0 && !t.Failed(); n++ {
		read(n)
	}
}

func link(t *testing.T, to, name string) {
	t.Helper()
	if err := os.Symlink(to, name); err != nil {
		t.Fatal(err)
	}
}

func TestPrompt_HoldsNothingFromTheGuestsFolderAboveSandboxed(t *testing.T) {
	v, a := open(t, map[string]string{
		"CLAUDE.md": "owner rule", "Guests/CLAUDE.md": "PLANTED", "Guests/5/CLAUDE.md": "PLANTED", "Guests/5/in/AGENTS.md": "PLANTED", "Guests/5/note.md": "PLANTED",
	})
	link(t, "Guests/5/in", filepath.Join(v.Path(), "Project"))
	for _, trust := range []core.Trust{core.Vault, core.Full} {
		for _, dir := range []string{"Guests/5/in", "Project", v.Path() + "/Guests/5/in", "."} {
			p, about := prompt(t, a, agent.PromptInput{WorkingDirectory: dir, Trust: trust, MayRead: everything,
				Contexts: []string{"Guests/5", "Guests/5/note.md", "Project"},
				Agent:    agent.Agent{Name: "x", Context: agent.Context{Include: []string{"Guests/**", "**/*.md"}}}})
			if strings.Contains(p, "PLANTED") || !strings.Contains(p, "owner rule") {
				t.Errorf("trust %s in %s: %+v\n%s", trust, dir, about, p)
			}
		}
	}
	p, _ := prompt(t, a, agent.PromptInput{WorkingDirectory: "Guests/5/in", Trust: core.Sandboxed, MayRead: func(n string) bool { return strings.HasPrefix(n, "Guests/5/") }})
	if strings.Count(p, "PLANTED") != 2 {
		t.Errorf("the guest's own prompt lacks the guest's files: %s", p)
	}
}

func TestPrompt_LeavesOutInstructionsWithASecondName(t *testing.T) {
	v, a := open(t, map[string]string{"Hard/CLAUDE.md": "HARD", "elsewhere.md": "SOFT"})
	link(t, "../elsewhere.md", filepath.Join(v.Path(), "Hard/AGENTS.md"))
	if err := os.Link(filepath.Join(v.Path(), "Hard/CLAUDE.md"), filepath.Join(v.Path(), "second.md")); err != nil {
		t.Fatal(err)
	}
	p, about := prompt(t, a, agent.PromptInput{WorkingDirectory: "Hard", Trust: core.Full, MayRead: everything})
	if strings.Contains(p, "HARD") || strings.Contains(p, "SOFT") || about.ContextFiles != 0 || !about.ContextTruncated {
		t.Errorf("%+v\n%s", about, p)
	}
	for _, said := range []string{"Hard/CLAUDE.md was left out: it has more than one hard link", "Hard/AGENTS.md was left out: it is no regular file"} {
		if !strings.Contains(p, said) {
			t.Errorf("the prompt does not say %q:\n%s", said, p)
		}
	}
	p, _ = prompt(t, a, agent.PromptInput{WorkingDirectory: "Hard", Trust: core.Sandboxed, MayRead: func(string) bool { return false }})
	if strings.Contains(p, "left out") {
		t.Errorf("a person is told of files that they may not read:\n%s", p)
	}
}

func TestPrompt_WhileItsFilesAreSwappedForTheAttackers(t *testing.T) {
	for _, c := range []struct{ name, swapped, with string }{
		{"the working directory for a link", "Project", "../attack/Project"},
		{"a folder above it for a link", "Above", "../attack/Above"},
		{"the file for a link", "Project/CLAUDE.md", "../../attack/Project/CLAUDE.md"},
		{"the working directory for a link into a guest's folder", "Project", "Guests/5/Project"},
	} {
		t.Run(c.name, func(t *testing.T) {
			v, a := open(t, map[string]string{
				"Project/CLAUDE.md": "owner rule", "Above/Project/CLAUDE.md": "owner rule", "Guests/5/Project/CLAUDE.md": "PLANTED",
			})
			attack := filepath.Join(filepath.Dir(v.Path()), "attack")
			for _, dir := range []string{"Project", "Above/Project"} {
				if err := os.MkdirAll(filepath.Join(attack, dir), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(attack, dir, "CLAUDE.md"), []byte("PLANTED"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			at := filepath.Join(v.Path(), c.swapped)
			link(t, c.with, at+"-link")
			seen := 0
			race(t, at, at+"-link", func(n int) {
				for _, dir := range []string{"Project", "Above/Project"} {
					p, _ := prompt(t, a, agent.PromptInput{WorkingDirectory: dir, Trust: core.Full, MayRead: everything})
					if strings.Contains(p, "PLANTED") {
						t.Errorf("prompt %d: %s", n, p)
					}
					if strings.Contains(p, "owner rule") {
						seen++
					}
				}
			})
			if seen == 0 {
				t.Error("the owner's file was never read: nothing was tested")
			}
		})
	}
}

func TestAgents_WhileTheirFolderIsSwappedForALink(t *testing.T) {
	v, a := open(t, map[string]string{
		".parachute/agents/helper.md": "---\nname: helper\n---\nowner rule", ".parachute/skills/s.md": "---\ndescription: d\n---\nowner rule",
		"Guests/5/p/agents/helper.md": "---\nname: helper\n---\nPLANTED", "Guests/5/p/skills/s.md": "---\ndescription: d\n---\nPLANTED",
		"Guests/5/p/workspaces/w/config.yaml": "name: PLANTED\n",
	})
	at := filepath.Join(v.Path(), ".parachute")
	link(t, "Guests/5/p", at+"-link")
	seen := 0
	race(t, at, at+"-link", func(n int) {
		a.Reload()
		who, _ := a.Choose("helper")
		if strings.Contains(who.Prompt, "PLANTED") || len(a.Workspaces()) != 0 {
			t.Errorf("reload %d: %+v, %v", n, who, a.Workspaces())
		}
		for _, s := range a.AllSkills() {
			if strings.Contains(s.Body, "PLANTED") {
				t.Errorf("reload %d: %+v", n, s)
			}
		}
		if who.Name == "helper" {
			seen++
		}
	})
	if seen == 0 {
		t.Error("the owner's agent was never read: nothing was tested")
	}
}
