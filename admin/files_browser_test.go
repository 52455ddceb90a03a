//go:build browser

package admin_test

import (
	"testing"

	"gatehouse/core"
	"gatehouse/web/webtest"
)

// What would be refused is said before it is sent; a picture that is pasted
// goes along; what is written outlives the news that come meanwhile.
func TestFilesAreCheckedAndPastedBeforeTheyAreSent(t *testing.T) {
	s := newSite(t, core.System{}, nil)
	s.world.full()
	b := webtest.New(t)
	signIn(b, s)
	b.Open(s.url + "/admin/chats/" + s.world.mine)
	live(b)
	b.Write(`#composer textarea`, "Look at these.")
	const attach = `(() => {
		const all = new DataTransfer();
		for (let i = 0; i < N; i++) all.items.add(new File(["a"], i + ".txt"));
		const input = document.querySelector("[data-files]");
		input.files = all.files;
		input.dispatchEvent(new Event("change", { bubbles: true }));
		return input.validationMessage;
	})()`
	if m := webtest.Value[string](b, `(() => { const N = 21; return `+attach+`; })()`); m != "At most 20 files go with a message." {
		t.Errorf("21 files: %q", m)
	}
	if m := webtest.Value[string](b, `(() => { const N = 2; return `+attach+`; })()`); m != "" {
		t.Errorf("2 files: %q", m)
	}
	n := webtest.Value[int](b, `(() => {
		const clip = new DataTransfer();
		clip.items.add(new File(["b"], "pasted.png", { type: "image/png" }));
		document.querySelector("#composer textarea").dispatchEvent(new ClipboardEvent("paste", { clipboardData: clip, bubbles: true, cancelable: true }));
		return document.querySelector("[data-files]").files.length;
	})()`)
	if n != 3 {
		t.Errorf("after pasting %d files go along, want 3", n)
	}
	s.world.ring("approvals")
	b.Eventually(`document.querySelector("[data-files]").files.length === 3 && document.querySelector("#composer textarea").value === "Look at these."`)
	b.Click(`#composer .primary`)
	b.Eventually(`performance.getEntriesByType("navigation")[0].type === "navigate" && document.querySelector("[data-files]").files.length === 0`)
	s.world.mu.Lock()
	defer s.world.mu.Unlock()
	if len(s.world.said) != 1 || len(s.world.said[0].Files) != 3 || s.world.said[0].Text != "Look at these." {
		t.Errorf("said %+v", s.world.said)
	}
}
