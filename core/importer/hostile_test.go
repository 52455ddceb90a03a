package importer_test

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/importer/importertest"
	"gatehouse/core/importer/report"
)

const oneGood = `{"uuid":"good","chat_messages":[{"uuid":"m","sender":"human","text":"hello"}]}`

// TestHostileConversationsAreReportedAndHarmNoOther has a good conversation behind each hostile one.
func TestHostileConversationsAreReportedAndHarmNoOther(t *testing.T) {
	node := func(id, parent string) string {
		return fmt.Sprintf(`%q:{"id":%q,"parent":%s,"message":{"author":{"role":"user"},"content":{"content_type":"text","parts":["said by %s"]}}}`, id, id, parent, id)
	}
	chat := func(id string, nodes ...string) string {
		return fmt.Sprintf(`{"id":%q,"current_node":"b","mapping":{%s}}`, id, strings.Join(nodes, ","))
	}
	for name, c := range map[string]struct {
		text, reason string // "" where it is imported
	}{
		"a million levels":             {`{"uuid":"x","chat_messages":` + strings.Repeat("[", 1_000_000) + strings.Repeat("]", 1_000_000) + "}", "nested deeper than"},
		"a million levels of objects":  {`{"mapping":` + strings.Repeat(`{"a":`, 1_000_000) + "1" + strings.Repeat("}", 1_000_000) + "}", "nested deeper than"},
		"parents in a cycle":           {chat("x", node("a", `"b"`), node("b", `"a"`)), ""},
		"its own parent":               {chat("x", node("b", `"b"`)), ""},
		"a parent that does not exist": {chat("x", node("b", `"nowhere"`)), ""},
		"ids that are there twice":     {`{"uuid":"x","chat_messages":[{"uuid":"m","sender":"human","text":"a"},{"uuid":"m","sender":"assistant","text":"b"}]}`, ""},
		"no current node":              {`{"id":"x","current_node":"zzz","mapping":{` + node("b", "null") + `}}`, ""},
		"invalid UTF-8":                {"{\"uuid\":\"x\",\"name\":\"\xff\xfe\",\"chat_messages\":[{\"uuid\":\"m\",\"sender\":\"human\",\"text\":\"a \xc3\x28 \xed\xa0\x80 b\"}]}", ""},
		"lone surrogates and zeros":    {`{"uuid":"x","name":"\ud800\u0000","chat_messages":[{"uuid":"m","sender":"human","text":"a\u0000\u001b[31m\ud800b"}]}`, ""},
		"a number as large as a book":  {`{"uuid":"x","created_at":` + strings.Repeat("9", 100_000) + `,"chat_messages":[{"uuid":"m","sender":"human","text":"a"}]}`, ""},
		"a key twice":                  {`{"uuid":"y","uuid":"x","chat_messages":[],"chat_messages":[{"uuid":"m","sender":"human","text":"a"}]}`, ""},
		"a hostile id":                 {`{"uuid":"../../../etc/passwd","chat_messages":[{"uuid":"../m","sender":"human","text":"a"}]}`, ""},
		"strings that hold brackets":   {`{"uuid":"x","chat_messages":[{"uuid":"m","sender":"human","text":"]}]}\\\"[{\\\\"}]}`, ""},
		"it is no text":                {`{"uuid":"x","chat_messages":[{"uuid":"m","sender":"human","text":nul}]}`, "not valid JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := open(t)
			r, list := h.run(h.text("x.json", "["+c.text+","+oneGood+"]"), operator)
			if len(list) != 2 || list[1].Outcome != "added" {
				t.Fatalf("%+v %+v", r, list)
			}
			if failed := list[0].Outcome == "failed"; failed != (c.reason != "") || failed && !strings.Contains(list[0].Reason, c.reason) {
				t.Errorf("%+v, want %q", list[0], c.reason)
			}
			if outside, _ := filepath.Glob(filepath.Join(filepath.Dir(h.vault.Path()), "*")); len(outside) != 1 {
				t.Errorf("outside of the vault: %v", outside)
			}
		})
	}
}

func TestFilesThatAreNotWholeAreReported(t *testing.T) {
	for name, text := range map[string]string{"ends in a string": `[` + oneGood + `,{"uuid":"x","name":"abc`, "ends in an object": `[` + oneGood + `,{"uuid":`, "ends behind a comma": `[` + oneGood + `,`, "too many brackets": `[` + oneGood + `]]`} {
		t.Run(name, func(t *testing.T) {
			h := open(t)
			r, list := h.run(h.text("x.json", text), operator)
			if r.Added != 1 || name != "too many brackets" && (r.Failed != 1 || !strings.Contains(list[1].Reason, "not complete")) {
				t.Errorf("%+v %+v", r, list)
			}
		})
	}
	for name, text := range map[string]string{"empty": "", "a picture": string(importertest.Picture()), "text": "hello", "half an archive": "PK\x03\x04abc", "HTML": "<html>"} {
		t.Run(name, func(t *testing.T) {
			h := open(t)
			if _, err := h.Run(context.Background(), h.text("x.json", text), operator, nil, func(*report.Report) {}); core.KindOf(err) != core.Invalid {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestNoValueOfAnotherTypeEndsAnImport puts every kind of value in the place of every other.
func TestNoValueOfAnotherTypeEndsAnImport(t *testing.T) {
	h := open(t)
	m := importertest.New(5)
	var all, some []string
	for _, whole := range []any{m.ClaudeConversation(0), m.ChatGPTConversation(0)} {
		text, err := json.Marshal(whole)
		if err != nil {
			t.Fatal(err)
		}
		for _, other := range importertest.Others {
			all = append(all, importertest.Replaced(text, other)...)
		}
	}
	for i := range all { // the parsers' own tests take all of them
		if i%60 == 0 {
			some = append(some, all[i])
		}
	}
	r, list := h.run(h.text("x.json", "["+strings.Join(some, ",")+"]"), operator)
	if r.Seen() != len(some) || r.Added+r.Updated+r.Unchanged == 0 {
		t.Fatalf("%d of %d: %+v", r.Seen(), len(some), r)
	}
	for _, e := range list {
		if strings.Contains(e.Reason, "the log has the cause") {
			t.Errorf("%+v", e)
		}
	}
}

func TestArchivesThatUnpackToTooMuchAreRefused(t *testing.T) {
	h := open(t)
	bomb := h.file("bomb.zip", func(w io.Writer) error {
		return importertest.Zip(w, func(w io.Writer) error {
			_, err := io.WriteString(w, `[{"uuid":"x","name":"`)
			zeros := bytes.Repeat([]byte("a"), 1<<20)
			for range 20 {
				if err == nil {
					_, err = w.Write(zeros)
				}
			}
			return err
		}, nil)
	})
	r, list := h.run(bomb, operator)
	if r.Added != 0 || len(list) != 1 || !strings.Contains(list[0].Reason, "unpacks to over") {
		t.Errorf("%+v %+v", r, list)
	}
	many := h.file("many.zip", func(w io.Writer) error {
		z := zip.NewWriter(w)
		for i := range 50_001 {
			if _, err := z.CreateHeader(&zip.FileHeader{Name: fmt.Sprint(i)}); err != nil {
				return err
			}
		}
		return z.Close()
	})
	if _, err := h.Run(context.Background(), many, operator, nil, func(*report.Report) {}); core.KindOf(err) != core.TooLarge {
		t.Errorf("many entries: %v", err)
	}
}

func TestAnArchiveWritesNothingUnderItsOwnNames(t *testing.T) {
	h := open(t)
	name := h.file("x.zip", func(w io.Writer) error {
		z := zip.NewWriter(w)
		for _, n := range []string{"../conversations.json", "/etc/conversations.json", `..\..\conversations-2.json`, "a/b/../../../x.png", "CLAUDE.md", ".mcp.json", "agents/a.md", "Notes/AGENTS.md"} {
			f, err := z.Create(n)
			if err == nil {
				_, err = io.WriteString(f, "["+strings.ReplaceAll(oneGood, `"good"`, fmt.Sprintf("%q", n))+"]")
			}
			if err != nil {
				return err
			}
		}
		link := &zip.FileHeader{Name: "conversations-link.json"}
		link.SetMode(os.ModeSymlink | 0o777)
		f, err := z.CreateHeader(link)
		if err == nil {
			_, err = io.WriteString(f, "/etc/passwd")
		}
		if err != nil {
			return err
		}
		return z.Close()
	})
	if r, list := h.run(name, operator); r.Added != 3 || r.Failed != 0 {
		t.Errorf("%+v %+v", r, list)
	}
	if outside, _ := filepath.Glob(filepath.Join(filepath.Dir(h.vault.Path()), "*")); len(outside) != 1 {
		t.Errorf("outside of the vault: %v", outside)
	}
	for _, name := range []string{"CLAUDE.md", ".mcp.json", "agents", "Notes"} { // what commands agents, too
		if _, err := h.vault.Stat(name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is in the vault: %v", name, err)
		}
	}
}

func TestLinksInADirectoryAreNotFollowed(t *testing.T) {
	h := open(t)
	secret := h.text("secret/agent.md", recordText)
	h.text("old/agent-chats/note.md", strings.ReplaceAll(recordText, "00000000000a", "00000000000d"))
	if err := os.Symlink(secret, filepath.Join(h.dir, "old/agent-chats/link.md")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Dir(secret), filepath.Join(h.dir, "old/agent-sessions")); err != nil {
		t.Fatal(err)
	}
	if r, list := h.run(filepath.Join(h.dir, "old"), operator); r.Added != 1 || r.Failed != 0 {
		t.Errorf("%+v %+v", r, list)
	}
}

// peak runs f and returns how much the heap in use grew at most, looked at every millisecond.
func peak(f func()) (most uint64) {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	before, done, ended := m.HeapInuse, make(chan struct{}), make(chan uint64)
	go func() {
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		var most uint64
		for {
			select {
			case <-tick.C:
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				most = max(most, m.HeapInuse-min(before, m.HeapInuse))
			case <-done:
				ended <- most
				return
			}
		}
	}()
	f()
	close(done)
	return <-ended
}

// TestALargeExportTakesLittleMemory imports an export with one conversation that is too large, with a text of
// 100 MB, one of 15 MB, and others of up to 3 MB.
func TestALargeExportTakesLittleMemory(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector needs memory of its own")
	}
	h := open(t)
	m := importertest.New(9)
	name := h.file("large.json", func(w io.Writer) error {
		if _, err := io.WriteString(w, "["+`{"uuid":"huge","chat_messages":[{"uuid":"m","sender":"human","text":"`); err != nil {
			return err
		}
		for range 100 {
			if _, err := w.Write(bytes.Repeat([]byte("a"), 1<<20)); err != nil {
				return err
			}
		}
		if _, err := io.WriteString(w, `"}]}`); err != nil {
			return err
		}
		enc := json.NewEncoder(w)
		for i := range 60 {
			m.Text = 20 << 10
			if i%10 == 0 {
				m.Text = 300 << 10
			}
			if i == 30 {
				m.Text = 1700 << 10
			}
			if _, err := io.WriteString(w, ","); err != nil {
				return err
			}
			if err := enc.Encode(m.ChatGPTConversation(i)); err != nil {
				return err
			}
		}
		_, err := io.WriteString(w, "]")
		return err
	})
	most := peak(func() {
		r, err := h.Run(context.Background(), name, operator, nil, func(*report.Report) {})
		if err != nil || r.Added != 60 || r.Failed != 1 || !strings.Contains(r.Faults[0].Reason, "larger than 16 MB") {
			t.Errorf("%+v, %v", r, err)
		}
	})
	t.Logf("the heap grew by %s at most", core.ByteSize(int(most)))
	if most > 64<<20 {
		t.Errorf("the heap grew by %s, want at most 64 MB", core.ByteSize(int(most)))
	}
}

// TestListsOfNothingTakeLittleMemory has lists of 15 MB whose elements are small, of which each would take a
// hundred times its size.
func TestListsOfNothingTakeLittleMemory(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector's memory is counted, too")
	}
	for name, c := range map[string]string{
		"messages": `{"uuid":"x","chat_messages":[%s]}`, "blocks": `{"uuid":"x","chat_messages":[{"uuid":"m","sender":"human","content":[%s]}]}`,
		"parts": `{"id":"x","mapping":{"a":{"message":{"content":{"thoughts":[%s]}}}}}`,
	} {
		for _, element := range []string{"{}", `""`} {
			list := strings.TrimSuffix(strings.Repeat(element+",", 15<<20/(len(element)+1)), ",")
			h := open(t)
			file := h.text("x.json", "["+fmt.Sprintf(c, list)+","+oneGood+"]")
			list = ""
			most := peak(func() {
				if r, _ := h.run(file, operator); r.Added != 1 || r.Failed != 1 {
					t.Errorf("%s of %s: %+v", name, element, r)
				}
			})
			if most > 200<<20 {
				t.Errorf("%s of %s: %d MB", name, element, most>>20)
			}
		}
	}
}

// TestAConversationDoesNotReplaceAnotherOfTheSameImport has two with one id in a file.
func TestAConversationDoesNotReplaceAnotherOfTheSameImport(t *testing.T) {
	h := open(t)
	said := func(text string) string {
		return fmt.Sprintf(`{"uuid":"c1","chat_messages":[{"uuid":"m","sender":"human","text":%q}]}`, text)
	}
	empty := `{"uuid":"c1","chat_messages":[]}`
	name := h.text("x.json", "["+strings.Join([]string{empty, said("the first"), said("the first"), said("another")}, ",")+"]")
	for range 2 {
		r, list := h.run(name, operator)
		if len(list) != 4 || list[1].Session == "" || r.Empty != 1 || r.Failed != 1 || r.Updated != 0 || !strings.Contains(list[3].Reason, "has the id of an earlier conversation") {
			t.Fatalf("%+v %+v", r, list)
		}
		if _, got := h.messages(list[1].Session); !strings.Contains(got, "the first") {
			t.Errorf("it holds %q", got)
		}
	}
}

// TestAToolsInputIsNotTakenForAnotherFormat has a key that marks the exports of ChatGPT.
func TestAToolsInputIsNotTakenForAnotherFormat(t *testing.T) {
	h := open(t)
	r, list := h.run(h.text("x.json", `[{"uuid":"c1","chat_messages":[{"uuid":"m","sender":"human","text":"hello"},
		{"uuid":"n","sender":"assistant","content":[{"type":"tool_use","id":"t","name":"index","input":{"mapping":{"a":"b"}}},{"type":"tool_result","tool_use_id":"t","content":"done"}]}]}]`), operator)
	if r.Added != 1 {
		t.Errorf("%+v %+v", r, list)
	}
}

func TestAPipeInADirectoryIsNotOpened(t *testing.T) {
	h := open(t)
	h.text("old/agent-chats/a.md", "---\nsession_id: s1\n---\n### User | 2025-01-02T03:04:05Z\n\nhello\n")
	if err := errors.Join(os.Mkdir(filepath.Join(h.dir, "old", "Chat"), 0o700), syscall.Mkfifo(filepath.Join(h.dir, "old", "Chat", "sessions.db"), 0o600)); err != nil {
		t.Fatal(err)
	}
	done := make(chan report.Report, 1)
	go func() {
		r, _ := h.Run(context.Background(), filepath.Join(h.dir, "old"), operator, nil, func(*report.Report) {})
		done <- r
	}()
	select {
	case r := <-done:
		if r.Added != 1 {
			t.Errorf("%+v", r)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the import waits for the pipe")
	}
}

// TestWhatAGuestWroteDoesNotBecomeTheOwners imports the gateway's own vault, in which a guest has written a record.
func TestWhatAGuestWroteDoesNotBecomeTheOwners(t *testing.T) {
	h := open(t)
	record := func(name, id string) {
		name = filepath.Join(h.vault.Path(), name)
		text := "---\nsession_id: " + id + "\n---\n### User | 2025-01-02T03:04:05Z\n\nhello\n"
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	record("Guests/7/notes.md", "planted")
	record("Notes/mine.md", "mine")
	if r, list := h.run(h.vault.Path(), operator); r.Added != 1 || list[0].File != "Notes/mine.md" {
		t.Errorf("%+v %+v", r, list)
	}
}

// TestAnArchiveDoesNotSayHowLargeItIsPacked is of one whose entry claims to be packed in a terabyte.
func TestAnArchiveDoesNotSayHowLargeItIsPacked(t *testing.T) {
	if raceEnabled {
		t.Skip("make counts runs it: it computes much, and nothing side by side")
	}
	h := open(t)
	name := h.file("x.zip", func(w io.Writer) error {
		var packed bytes.Buffer
		f, err := flate.NewWriter(&packed, flate.BestSpeed)
		if err != nil {
			return err
		}
		size := 64 << 20
		if _, err := f.Write(bytes.Repeat([]byte(" "), size)); err != nil {
			return err
		}
		if err := f.Close(); err != nil {
			return err
		}
		z := zip.NewWriter(w)
		e, err := z.CreateRaw(&zip.FileHeader{Name: "conversations.json", Method: zip.Deflate, CompressedSize64: 1 << 40, UncompressedSize64: uint64(size)})
		if err != nil {
			return err
		}
		if _, err := e.Write(packed.Bytes()); err != nil {
			return err
		}
		return z.Close()
	})
	r, list := h.run(name, operator)
	if len(list) != 1 || !strings.Contains(list[0].Reason, "times its size") {
		t.Errorf("%+v %+v", r, list)
	}
}
