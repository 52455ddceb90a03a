package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gatehouse/configs"
	"gatehouse/configs/values"
	"gatehouse/core/llm/llmtest"
	"gatehouse/core/store/storetest"
)

// activityFiles returns the files of the log of activity of today and of the days around.
func (w *world) activityFiles() (lines, log string) {
	w.t.Helper()
	for _, glob := range []string{"Daily/.activity/*.jsonl", "Daily/chat-log/*.md"} {
		names, err := filepath.Glob(filepath.Join(w.cfg.VaultPath, glob))
		if err != nil {
			w.t.Fatal(err)
		}
		for _, name := range names {
			b, err := os.ReadFile(name)
			if err != nil {
				w.t.Fatal(err)
			}
			if strings.HasSuffix(name, ".md") {
				log += string(b)
			} else {
				lines += string(b)
			}
		}
	}
	return lines, log
}

func TestTheOwnersConversationsAreLoggedAndTheGuestsNever(t *testing.T) {
	w := newWorld(t, nil)
	boss, guest := w.owner("Boss"), w.friend("Ada")
	w.replies(guest, "a secret of mine")
	w.replies(boss, "Where is the kettle? I need it.")
	if status, m, _ := w.asked("POST", "/api/chat", map[string]any{"message": "Over the API."}, wantJSON); status != http.StatusOK {
		t.Fatal(status, m)
	}
	w.until("both are logged", func() bool {
		_, log := w.activityFiles()
		return strings.Contains(log, "\n1. Where is the kettle?\n") && strings.Contains(log, "\n1. Over the API.\n")
	})
	lines, log := w.activityFiles()
	if strings.Contains(lines+log, "secret") || strings.Count(lines, "\n") != 2 || strings.Count(log, "# para:") != 2 {
		t.Errorf("the list is\n%s\nthe log\n%s", lines, log)
	}
	if status, hits := w.call("GET", "/api/search?q=kettle", nil); status != 200 {
		t.Error(hits)
	}

	// It is switched off for a conversation, and the conversation deleted.
	_, list, _ := w.asked("GET", "/api/chat?source=telegram", nil, nil)
	var id string
	for _, s := range list["sessions"].([]any) {
		if s := s.(map[string]any); s["user_id"] == 1.0 {
			id = s["id"].(string)
		}
	}
	if status, m, _ := w.asked("PATCH", "/api/chat/"+id, map[string]any{"metadata": map[string]any{"activity": false}}, http.Header{"If-Match": {"*"}}); status != 200 {
		t.Fatal(m)
	}
	w.replies(boss, "Not this.")
	if status, m, _ := w.asked("DELETE", "/api/chat/"+id, nil, http.Header{"If-Match": {"*"}}); status >= 300 {
		t.Fatal(m)
	}
	w.until("what was written of it is gone", func() bool { lines, log := w.activityFiles(); return !strings.Contains(lines+log, id) })
	if lines, log := w.activityFiles(); strings.Contains(lines+log, "Not this") || !strings.Contains(log, "Over the API.") {
		t.Errorf("the list is\n%s\nthe log\n%s", lines, log)
	}
}

func TestTheOwnerSwitchesTheLogInChat(t *testing.T) {
	w := newWorld(t, nil)
	boss, guest := w.boss(), w.guest("Ada")
	for _, c := range []struct{ say, want string }{
		{"/activity", "This conversation is logged in your vault"}, {"/activity off", "no longer logged"}, {"/activity", "is not logged in your vault"},
		{"not this", ""}, {"/activity maybe", "followed by on or off"}, {"/activity on", "is logged in your vault, in Daily/chat-log"}, {"but this", ""},
	} {
		if got := w.replies(boss, c.say).Text; !strings.Contains(got, c.want) {
			t.Errorf("%s: %q", c.say, got)
		}
	}
	w.until("it is logged", func() bool { _, log := w.activityFiles(); return strings.Contains(log, "2. but this") })
	if _, log := w.activityFiles(); strings.Contains(log, ". not this") {
		t.Error(log)
	}
	if got := w.replies(guest, "/activity on").Text; !strings.Contains(got, "Only the owner") {
		t.Errorf("to a guest: %q", got)
	}
}

// While the log waits for its model, messages are answered as without it: the same
// commits, and the same that wait for the disk.
func TestTheLogAddsNoCommitToAMessage(t *testing.T) {
	storetest.SQLiteOnly(t, "a commit of TxSoon waits on a server")
	const n = 10
	w, model, _ := newTitleWorld(t, func(c *configs.Config) {
		c.Activity, c.Index, c.BusyMode, c.RateLimit = true, "off", "queue", values.Rate{}
	})
	boss := w.boss()
	model.Script(llmtest.Say("One."), llmtest.Reply{Text: []string{"A title"}, Pause: time.Hour})
	w.replies(boss, "first")
	w.until("the log waits for the model", func() bool { return model.Total() == 2 })
	commits, synced := w.app.db.Commits(), w.app.db.Synced()
	for range n {
		w.replies(boss, "where do we stand with this?")
	}
	if c, s := w.app.db.Commits()-commits, w.app.db.Synced()-synced; c > 3*n+4 || s > 2*n+4 {
		t.Errorf("%d messages took %d commits, of which %d waited for the disk; want %d and %d", n, c, s, 3*n, 2*n)
	}
}

// The days of the chat log are those of the time zone that the owner has chosen.
func TestTheChatLogHasTheDaysOfTheOwnersTimeZone(t *testing.T) {
	w := newWorld(t, nil)
	boss := w.owner("Boss")
	for _, zone := range []string{"Pacific/Kiritimati", "Pacific/Pago_Pago"} { // never the same day
		w.replies(boss, "/timezone "+zone)
		w.replies(boss, "/new")
		w.replies(boss, "Where is the kettle?")
		at, err := time.LoadLocation(zone)
		if err != nil {
			t.Fatal(err)
		}
		w.until("it is logged on the day of "+zone, func() bool {
			_, err := os.Stat(filepath.Join(w.cfg.VaultPath, "Daily/chat-log", time.Now().In(at).Format(time.DateOnly)+".md"))
			return err == nil
		})
	}
}
