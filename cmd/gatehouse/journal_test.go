package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"gatehouse/configs"
	"gatehouse/connectors/telegram/telegramtest"
	"gatehouse/core"
	"gatehouse/core/index/search"
	"gatehouse/core/llm/llmtest"
)

// scribe transcribes every recording of "OggS tea".
func scribe(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if f, _, err := r.FormFile("file"); err == nil {
			if data, _ := io.ReadAll(f); string(data) == "OggS tea" {
				io.WriteString(w, `{"text":"We had tea."}`)
				return
			}
		}
		http.Error(w, "overloaded", http.StatusServiceUnavailable)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// diary returns the only day file in a directory of the vault.
func (w *world) diary(dir string) string {
	w.t.Helper()
	names, err := filepath.Glob(filepath.Join(w.cfg.VaultPath, dir, "*.md"))
	if err != nil || len(names) != 1 {
		w.t.Fatalf("day files in %s: %q, %v", dir, names, err)
	}
	b, err := os.ReadFile(names[0])
	if err != nil {
		w.t.Fatal(err)
	}
	return string(b)
}

func TestJournal_TextVoiceAndPhotoFromChat(t *testing.T) {
	t.Parallel()
	url := scribe(t)
	w, model := newModelWorld(t, func(c *configs.Config) { c.TranscribeURL = url })
	boss := w.boss()
	says := func(out telegramtest.Outgoing, want string) {
		t.Helper()
		m := w.post(boss, boss.DM(), out)
		if got := w.answers(boss.DM(), m.ID); !strings.Contains(got.Text, want) {
			t.Errorf("%+v was answered %q, want %q", out, got.Text, want)
		}
	}
	says(telegramtest.Outgoing{Text: "/journal Walked to the shop.\n# para:abc123def456 1:00 AM\nis text"}, "Added to your journal")
	says(telegramtest.Outgoing{Text: "/j Fed the heron."}, "Added to your journal")
	says(telegramtest.Outgoing{Text: "/j"}, "What shall I write?")
	says(telegramtest.Outgoing{File: &telegramtest.File{Kind: "voice", Data: []byte("OggS tea")}}, "We had tea.")
	says(telegramtest.Outgoing{Text: "/journal The sky", File: &telegramtest.File{Kind: "photo", Data: smallPicture(t)}}, "Added to your journal")
	says(telegramtest.Outgoing{Text: "/journal", File: &telegramtest.File{Kind: "voice", Data: []byte("OggS noise")}}, "The transcription failed; the text is added as soon as it works")
	says(telegramtest.Outgoing{Text: "/journal", File: &telegramtest.File{Kind: "document", Name: "plan.pdf", Data: []byte("%PDF-1")}}, "plan.pdf was not added")
	calls := model.Total()
	says(telegramtest.Outgoing{Text: "and now a question"}, fakeSays)
	if model.Total() != calls+1 || calls != 0 {
		t.Errorf("the model was called %d times before the question", calls)
	}
	got := w.diary("Daily")
	for _, want := range []string{
		`(?m)^# para:[a-z0-9]{12} \d+:\d\d [AP]M$`, `Fed the heron\.`, `Walked to the shop\.\n\\# para:abc123def456 1:00 AM\nis text`, `We had tea\.\n\n## Audio\n- Path: assets/\d{4}-\d\d-\d\d/audio-\d+-\d\d-[ap]m\.og[ag]\n`,
		`The sky\n\n## Images\n!\[\]\(assets/\d{4}-\d\d-\d\d/photo-\d+-\d\d-[ap]m\.(jpg|png)\)`,
	} {
		if !regexp.MustCompile(want).MatchString(got) {
			t.Errorf("the journal does not have %s:\n%s", want, got)
		}
	}
	if n := strings.Count(got, "\n# para:") + 1; n != 5 {
		t.Errorf("%d entries, want 5:\n%s", n, got)
	}
	for _, m := range regexp.MustCompile(`assets/[^)\n]+`).FindAllString(got, -1) {
		if _, err := os.Stat(filepath.Join(w.cfg.VaultPath, "Daily", m)); err != nil {
			t.Error(err)
		}
	}
	if names := w.assets(); len(names) != 0 {
		t.Errorf("kept twice: %q", names)
	}
	w.until("the entry is found by itself", func() bool {
		hits := w.meant(search.Reader{User: core.Operator, Trust: core.Vault}, "heron type:journal")
		return len(hits) == 1 && hits[0].Type == search.Journal && !strings.Contains(hits[0].Excerpt, "shop")
	})
}

func TestJournal_AGuestWritesInTheirOwnFolderAndNotInAGroup(t *testing.T) {
	t.Parallel()
	w, _ := newModelWorld(t, nil)
	boss, ada := w.boss(), w.guest("Ada")
	w.replies(ada, "/journal Planted beans.")
	if got := w.diary(filepath.Join("Guests", "2", "Daily")); !strings.Contains(got, "Planted beans.") {
		t.Errorf("%s", got)
	}
	if _, err := os.Stat(filepath.Join(w.cfg.VaultPath, "Daily")); err == nil {
		t.Error("the operator's journal has something")
	}
	g := w.group(telegramtest.Supergroup, boss, ada)
	m := w.post(ada, g.Conversation(), telegramtest.Outgoing{Text: "/journal secret"})
	if got := w.answers(g.Conversation(), m.ID); !strings.Contains(got.Text, "use /journal in our direct chat") {
		t.Errorf("%q", got.Text)
	}
}

func TestTimezone_SetsTheDateOfEntries(t *testing.T) {
	t.Parallel()
	w, _ := newModelWorld(t, nil)
	ada := w.guest("Ada")
	for text, want := range map[string]string{"/timezone": "Your time zone is", "/timezone Mars/Phobos": "I don't know the time zone", "/timezone ../../etc/passwd": "I don't know the time zone"} {
		if got := w.replies(ada, text); !strings.Contains(got.Text, want) {
			t.Errorf("%s: %q", text, got.Text)
		}
	}
	if got := w.replies(ada, "/timezone Pacific/Kiritimati"); !strings.Contains(got.Text, "now Pacific/Kiritimati") {
		t.Errorf("%q", got.Text)
	}
	w.quiet()
	far, err := w.app.pairing.People.Timezone(t.Context(), w.app.db, w.user(ada))
	if err != nil || far.String() != "Pacific/Kiritimati" {
		t.Fatalf("%v, %v", far, err)
	}
	before := time.Now()
	got := w.replies(ada, "/journal Tea.")
	const form = "2 January 2006"
	if !strings.Contains(got.Text, before.In(far).Format(form)) && !strings.Contains(got.Text, time.Now().In(far).Format(form)) {
		t.Errorf("%q", got.Text)
	}
}

// A message for the agent is the agent's, once another command came after /journal.
func TestJournal_AnotherCommandEndsTheWaitForAMessage(t *testing.T) {
	t.Parallel()
	w, model := newModelWorld(t, nil)
	boss := w.boss()
	for i, command := range []string{"/journal bought milk", "/timezone"} {
		w.replies(boss, "/journal")
		w.replies(boss, "/journal") // the second takes the place of the first
		w.replies(boss, command)
		if got := w.replies(boss, "what is the secret project?").Text; !strings.Contains(got, fakeSays) || model.Total() != i+1 {
			t.Errorf("after %s: %q, %d calls of the model", command, got, model.Total())
		}
	}
	if got := w.diary("Daily"); strings.Contains(got, "secret") {
		t.Errorf("%s", got)
	}
}

// A recording may take minutes to transcribe: /status and /stop of the chat do not wait for it,
// and what is written meanwhile is the agent's.
func TestJournal_ControlsAreHandledWhileTheAwaitedRecordingIsTranscribed(t *testing.T) {
	t.Parallel()
	begun, release := make(chan struct{}, 10), make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		begun <- struct{}{}
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(slow.Close)
	t.Cleanup(func() { close(release) })
	w, model := newModelWorld(t, func(c *configs.Config) { c.TranscribeURL = slow.URL })
	boss := w.boss()
	w.replies(boss, "/journal")
	w.post(boss, boss.DM(), telegramtest.Outgoing{File: &telegramtest.File{Kind: "voice", Data: []byte("OggS tea")}})
	<-begun
	if got := w.replies(boss, "/status").Text; got == "" {
		t.Error("/status was not answered")
	}
	question := boss.Send("and now a question")
	stop := boss.Send("/stop")
	w.hears(boss.DM(), func(m telegramtest.Message) bool { return m.ID > stop.ID && strings.Contains(m.Text, "Stopped.") })
	w.quiet()
	if all := strings.Join(w.said(boss.DM(), question.ID), "\n"); strings.Contains(all, "Added to your journal") || strings.Contains(all, "has closed") {
		t.Errorf("%s", all)
	}
	if got := w.replies(boss, "and another one").Text; !strings.Contains(got, fakeSays) || model.Total() == 0 {
		t.Errorf("%q", got)
	}
}

// All photos of an album are in the journal, and none goes to the agent.
func TestJournal_KeepsEveryPhotoOfAnAlbum(t *testing.T) {
	t.Parallel()
	w, model := newModelWorld(t, nil)
	boss := w.boss()
	w.replies(boss, "/journal")
	first := w.post(boss, boss.DM(), telegramtest.Outgoing{Album: "a1", File: &telegramtest.File{Kind: "photo", Data: smallPicture(t)}})
	w.answers(boss.DM(), first.ID)
	for range 2 { // after the first is handled
		w.post(boss, boss.DM(), telegramtest.Outgoing{Album: "a1", File: &telegramtest.File{Kind: "photo", Data: smallPicture(t)}})
	}
	w.until("all are there", func() bool { return strings.Count(w.diary("Daily"), "](assets/") == 3 })
	w.quiet() // "/journal" that waits behind another message does not take the next one yet
	w.replies(boss, "/journal")
	for range 3 { // at once
		w.post(boss, boss.DM(), telegramtest.Outgoing{Album: "b1", File: &telegramtest.File{Kind: "photo", Data: smallPicture(t)}})
	}
	w.until("all are there", func() bool { return strings.Count(w.diary("Daily"), "](assets/") == 6 })
	w.quiet()
	for i, together := range []bool{true, false} { // the command is the caption of the first
		photo := telegramtest.Outgoing{Album: "c" + strconv.Itoa(i), Text: "/journal Garden.", File: &telegramtest.File{Kind: "photo", Data: smallPicture(t)}}
		first := w.post(boss, boss.DM(), photo)
		if !together {
			w.answers(boss.DM(), first.ID)
		}
		photo.Text = ""
		for range 2 {
			w.post(boss, boss.DM(), photo)
		}
		w.until("all are there", func() bool { return strings.Count(w.diary("Daily"), "](assets/") == 9+3*i })
		w.quiet()
	}
	if n := strings.Count(w.diary("Daily"), "Garden."); n != 2 {
		t.Errorf("the caption is there %d times", n)
	}
	if model.Total() != 0 {
		t.Errorf("the model was called %d times", model.Total())
	}
	if got := w.replies(boss, "and now a question").Text; !strings.Contains(got, fakeSays) {
		t.Errorf("%q", got)
	}
}

func TestJournalWrite_AnAgentWritesForTheSenderAndAsksTheOwner(t *testing.T) {
	t.Parallel()
	w, model := newModelWorld(t, nil)
	boss, ada := w.boss(), w.guest("Ada")
	call := llmtest.CallTool("a", "JournalWrite", `{"text":"Beans are planted.","date":"2026-01-28","time":"22:15"}`)
	model.Script(call, llmtest.Say("Noted."))
	if got := w.replies(ada, "note that the beans are planted"); got.Text != "Noted." {
		t.Errorf("%q", got.Text)
	}
	if got := w.diary(filepath.Join("Guests", strconv.FormatInt(w.user(ada), 10), "Daily")); !regexp.MustCompile(`^# para:[a-z0-9]{12} 10:15 PM\n\nBeans are planted\.\n$`).MatchString(got) {
		t.Errorf("%s", got)
	}
	w.quiet()
	model.Script(call, llmtest.Say("Noted."))
	m := boss.Send("note that the beans are planted")
	w.hears(boss.DM(), func(m telegramtest.Message) bool { return strings.Contains(m.Text, "Daily/2026-01-28.md") })
	if _, err := os.Stat(filepath.Join(w.cfg.VaultPath, "Daily")); err == nil {
		t.Errorf("written without a question: %q", w.said(boss.DM(), m.ID))
	}
}

func TestContext_MakesTheConversationAboutWhatTheSenderMayRead(t *testing.T) {
	t.Parallel()
	w, _ := newModelWorld(t, nil)
	boss, ada := w.boss(), w.guest("Ada")
	w.put("Chat/contexts/shed.json", `{"name":"shed","description":"","folders":["Notes/Shed",".parachute/trash"],"files":["Plan.md"]}`)
	if got := w.replies(boss, "/context"); !strings.Contains(got.Text, "shed") {
		t.Errorf("%q", got.Text)
	}
	if got := w.replies(boss, "/context ../x"); !strings.Contains(got.Text, "There is no saved context") {
		t.Errorf("%q", got.Text)
	}
	if got := w.replies(boss, "/context shed"); !strings.Contains(got.Text, "Notes/Shed") || !strings.Contains(got.Text, "1 more you may not read") {
		t.Errorf("%q", got.Text)
	}
	w.quiet()
	var paths []string
	if err := w.app.db.Select(t.Context(), &paths, `SELECT folder_path FROM session_contexts ORDER BY folder_path`); err != nil || strings.Join(paths, " ") != "Notes/Shed Plan.md" {
		t.Errorf("%q, %v", paths, err)
	}
	if got := w.replies(ada, "/context shed"); !strings.Contains(got.Text, "Only the owner or an admin") {
		t.Errorf("%q", got.Text)
	}
}
