package transcript_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gatehouse/core"
	"gatehouse/core/transcript"
	"gatehouse/core/vault"
)

// An import replaces a transcript in one step; a turn that has opened the file that was there
// would write what the user said into nothing.
func TestATurnThatBeginsWhileItsTranscriptIsReplacedWritesIntoTheNewOne(t *testing.T) {
	v, err := vault.Open(filepath.Join(t.TempDir(), "vault"))
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	files := transcript.New(transcript.Options{Vault: v})
	const id = "0a1b2c3d-0000-4000-8000-00000000000a"
	open := func() *transcript.Conversation {
		c, err := files.Open(transcript.Session{ID: id, MessageCount: 1})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	say := func(c *transcript.Conversation, run, text string) error {
		return c.Append(run, 0, transcript.Message{Role: "user", Blocks: []core.Block{{Type: "text", Text: text}}})
	}
	first := open()
	if err := say(first, "r1", "before"); err != nil {
		t.Fatal(err)
	}
	if err := files.Replace(first.Name(), func() error { t.Error("it is replaced while a turn writes"); return nil }); core.KindOf(err) != core.Conflict {
		t.Errorf("while a turn writes: %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	next, done := open(), make(chan error, 1)
	defer next.Close()
	path := filepath.Join(v.Path(), next.Name())
	err = files.Replace(next.Name(), func() error {
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		began := make(chan struct{})
		go func() {
			close(began)
			done <- say(next, "r2", "in the middle")
		}()
		<-began
		for range 1000 {
			if b, err := os.ReadFile(path); err != nil || strings.Contains(string(b), "in the middle") {
				t.Errorf("the turn did not wait: %v", err)
				break
			}
		}
		if err := os.WriteFile(path+".new", text, 0o600); err != nil {
			return err
		}
		return os.Rename(path+".new", path)
	})
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	b, readErr := os.ReadFile(path)
	if err != nil || readErr != nil || strings.Count(string(b), "in the middle") != 1 || !strings.Contains(string(b), "before") {
		t.Errorf("%v %v\n%s", err, readErr, b)
	}
}
