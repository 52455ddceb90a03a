//go:build browser

package admin_test

import (
	"testing"

	"github.com/chromedp/chromedp/kb"

	"gatehouse/core"
	"gatehouse/web/webtest"
)

// putFiles puts files on the page as the browser does it: "choose", "drop" or "paste".
const putFiles = `((how, files) => {
	const all = new DataTransfer();
	for (const [name, size] of files) all.items.add(new File([new Uint8Array(size)], name));
	const input = document.querySelector("[data-files]");
	if (how === "choose") {
		input.files = all.files;
		input.dispatchEvent(new Event("change", { bubbles: true }));
	} else if (how === "paste") {
		document.querySelector("#composer textarea").dispatchEvent(new ClipboardEvent("paste", { clipboardData: all, bubbles: true, cancelable: true }));
	} else {
		for (const type of ["dragover", "drop"]) document.querySelector("h1").dispatchEvent(new DragEvent(type, { dataTransfer: all, bubbles: true, cancelable: true }));
	}
	return [...input.files].map((f) => f.name).join(" ");
})`

// What is chosen, dropped anywhere or pasted goes along together, is listed, can be
// taken off by keyboard, and outlives the news that come meanwhile.
func TestFilesAreChosenDroppedAndPastedIntoTheComposer(t *testing.T) {
	s, b := atDesk(t, "/admin/chats")
	b.Open(s.url + "/admin/chats/" + s.world.mine)
	live(b)
	b.Eventually(`document.documentElement.dataset.chat === "on"`)
	b.Write(`#composer textarea`, "Look at these.")
	for _, c := range []struct{ how, files, want string }{
		{"choose", `[["a.txt", 1]]`, "a.txt"},
		{"drop", `[["b.txt", 2000], ["c.txt", 3]]`, "a.txt b.txt c.txt"},
		{"paste", `[["pasted.png", 4]]`, "a.txt b.txt c.txt pasted.png"},
	} {
		if got := webtest.Value[string](b, putFiles+`("`+c.how+`", `+c.files+`)`); got != c.want {
			t.Errorf("%s: %q go along, want %q", c.how, got, c.want)
		}
	}
	b.Says(`#say`, "4 files go with the message.")
	b.Says(`#picked li:nth-child(2)`, "2 KB")
	wellMannered(t, b, "files")
	b.Keep("admin-chat-files", b.Picture())
	b.Focus(`#picked li:nth-child(3) button`)
	b.Press(kb.Enter)
	b.Focused(`#picked [aria-label="Take off pasted.png"]`)
	s.world.ring(core.TopicApprovals)
	b.Eventually(`document.querySelectorAll("#picked li").length === 3 && document.querySelector("[data-files]").files.length === 3 && document.querySelector("#composer textarea").value === "Look at these."`)
	b.Click(`#composer .primary`)
	b.Eventually(`performance.getEntriesByType("navigation")[0].type === "navigate" && document.querySelector("[data-files]").files.length === 0`)
	s.world.mu.Lock()
	defer s.world.mu.Unlock()
	if len(s.world.said) != 1 || len(s.world.said[0].Files) != 3 || s.world.said[0].Text != "Look at these." {
		t.Errorf("said %+v", s.world.said)
	}
}

// What would be refused is left out before it is sent, with the reason.
func TestFilesThatCanNotGoAlongAreLeftOutWithTheReason(t *testing.T) {
	s, b := atDesk(t, "/admin/chats")
	b.Open(s.url + "/admin/talk")
	live(b)
	b.Eventually(`document.documentElement.dataset.chat === "on"`)
	for _, c := range []struct{ files, says, want string }{
		{`[["big.bin", 20971521], ["a.txt", 1]]`, "big.bin was left out: it is larger than 20 MB.", "a.txt"},
		{`[["b.bin", 17000000], ["c.bin", 17000000], ["d.bin", 17000000]]`, "c.bin was left out: the files would be larger than 32 MB together. So were 1 more.", "a.txt b.bin"},
		{`Array.from({ length: 19 }, (_, i) => [i + ".txt", 1])`, "18.txt was left out: at most 20 files go with a message.", ""},
	} {
		got := webtest.Value[string](b, putFiles+`("drop", `+c.files+`)`)
		if c.want != "" && got != c.want {
			t.Errorf("%q go along, want %q", got, c.want)
		}
		b.Says(`#picked [role=alert]`, c.says)
	}
	b.Eventually(`document.querySelector("[data-files]").files.length === 20`)
	b.Eventually(`document.querySelector("#composer .primary").getBoundingClientRect().bottom <= innerHeight`)
	b.Keep("admin-chat-refused", b.Picture())
}
