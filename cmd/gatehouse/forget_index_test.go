package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"gatehouse/configs"
	"gatehouse/core"
	"gatehouse/core/index/search"
	"gatehouse/core/llm/embedtest"
	"gatehouse/core/llm/llmtest"
	"gatehouse/core/store/storetest"
)

// What the search had of a person's files and conversations, of earlier versions too, is nowhere in
// the bytes of the database: neither text, nor words of an index, nor vectors.
func TestForgettingLeavesNoByteOfWhatWasIndexedInTheDatabasesFiles(t *testing.T) {
	t.Parallel()
	storetest.SQLiteOnly(t, "its files")
	server := embedtest.New(t, 256)
	w, model := newModelWorld(t, func(c *configs.Config) {
		c.EmbedURL, c.EmbedModel, c.BudgetDay.Tokens = server.URL, "small", 1_000_000
	})
	zeb := w.guest("Zebulon")
	user := w.user(zeb)
	// No word begins like another one, since an index stores what two have in common once.
	const earlier, file, asked, answered, kept = "bqvwxkdfzjmmpgtk", "dhjxqzvwkkrtpfgm", "fwqkzzxjvbnmtrgh", "gxkqjwvzztrfbpmn", "hvqxzjkwwpgtrmfd"
	note := fmt.Sprintf("Guests/%d/notes.md", user)
	find := func(word string, kind string) func() bool {
		return func() bool {
			hits := w.meant(search.Reader{User: user, Trust: core.Sandboxed}, `"`+word+`"`)
			return len(hits) == 1 && hits[0].Type == kind
		}
	}
	w.put(note, "A note about "+earlier+".\n")
	w.until("the first version is found", find(earlier, search.Document))
	w.put(note, "A note about "+file+".\n")
	w.until("the second version is found", find(file, search.Document))
	w.put("Notes/other.md", "Another user wrote about "+kept+".\n")
	model.Script(llmtest.Say("It is about " + answered + "."))
	w.replies(zeb, "What is "+asked+"?")
	w.quiet()
	w.until("the conversation is found", find(asked, search.Session))
	w.until("all is embedded", func() bool {
		return w.count(`SELECT count(*) FROM chunks WHERE piece >= 0 AND embedding IS NULL AND content_type <> 'session'`) == 0 && w.count(`SELECT count(*) FROM chunks WHERE content_type = 'session' AND embedding IS NOT NULL`) > 0 &&
			w.count(`SELECT count(*) FROM chunks WHERE chunk_text LIKE $1`, "%"+kept+"%") == 1
	})
	var vectors [][]byte
	if err := w.app.db.Select(t.Context(), &vectors, `SELECT embedding FROM chunks WHERE embedding IS NOT NULL AND content_id IN
		(SELECT content_id FROM index_manifest WHERE area = $1 UNION SELECT id FROM sessions WHERE user_id = $2)`, fmt.Sprintf("guest:%d", user), user); err != nil {
		t.Fatal(err)
	}
	if len(vectors) < 2 {
		t.Fatalf("%d vectors, want those of the note and of the conversation", len(vectors))
	}
	needles := map[string][]byte{"the earlier note": []byte(earlier[4:]), "the note": []byte(file[4:]), "the question": []byte(asked[4:]), "the answer": []byte(answered[4:])}
	for i, v := range vectors {
		needles[fmt.Sprintf("vector %d", i)] = v
	}
	there := func(needle []byte) bool {
		names, err := filepath.Glob(w.app.db.Path() + "*")
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if b, err := os.ReadFile(name); err == nil && bytes.Contains(b, needle) {
				return true
			}
		}
		return false
	}
	for what, needle := range needles {
		if !there(needle) {
			t.Errorf("before, %s is not in the files: the test looks for something else", what)
		}
	}
	f, err := w.app.eraser.Forget(t.Context(), fmt.Sprint(user), cli, nil)
	if err != nil || !f.Compacted {
		t.Fatalf("%+v, %v", f, err)
	}
	for what, needle := range needles {
		if there(needle) {
			t.Errorf("%s is still in the files", what)
		}
	}
	if !there([]byte(kept[4:])) {
		t.Error("what another user wrote is gone")
	}
}
