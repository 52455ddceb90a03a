package main

import (
	"net/url"
	"regexp"
	"strings"
	"testing"
)

func TestThePanelFindsWhatWasSaidAndWhatTheVaultHas(t *testing.T) {
	t.Parallel()
	w, _ := newModelWorld(t, nil)
	ada := w.guest("Ada")
	w.answers(ada.DM(), ada.Send("Who makes the quince marmalade?").ID)
	w.quiet()
	const note = "Kitchen/Jam & <jelly>.md"
	w.put(note, "# Jam\n\nThe marmalade needs two days.\n")
	w.put("Kitchen/.env", "marmalade=1\n")
	w.put("Kitchen/pan.md", "marmalade\x00\x01\x02")
	b := w.browser()
	var page string
	w.app.library.Crawler.Kick()
	w.until("both are found", func() bool {
		page = b.page("/admin/search?q=marmalade")
		return strings.Contains(page, "/admin/search/message?") && strings.Contains(page, "/admin/search/document?")
	})
	for _, want := range []string{`quince <mark>marmalade</mark>?`, "<bdi>Ada</bdi>", `The <mark>marmalade</mark> needs two days.`, "Kitchen/Jam &amp; &lt;jelly&gt;.md:"} {
		if !strings.Contains(page, want) {
			t.Errorf("the results lack %q:\n%s", want, page)
		}
	}
	for _, name := range []string{".env", "pan.md"} {
		if strings.Contains(page, name) {
			t.Errorf("%s is found", name)
		}
	}
	link := regexp.MustCompile(`href="(/admin/search/message\?[^"]+)"`).FindStringSubmatch(page)
	if link == nil {
		t.Fatal("no link to the message")
	}
	if chat := b.page(strings.ReplaceAll(link[1], "&amp;", "&")); !strings.Contains(chat, "Who makes the quince marmalade?") {
		t.Errorf("the link leads to %s", chat)
	}
	if text := b.page("/admin/search/document?line=3&path=" + url.QueryEscape(note)); !strings.Contains(text, `<li id="line" aria-current="true">The marmalade needs two days.</li>`) {
		t.Errorf("the document is shown as %s", text)
	}
	w.until("the state of the index is shown", func() bool {
		page = b.page("/admin/search")
		return strings.Contains(page, "Up to date") && strings.Contains(page, "Kitchen/pan.md")
	})
	if strings.Contains(page, ".env") {
		t.Error("the state of the index names a file of the deny list")
	}
	w.until("a conversation that waits for the index is shown", func() bool {
		w.sql(`UPDATE index_manifest SET behind = 1 WHERE content_type = 'session'`) // until upkeep comes
		page = b.page("/admin/search")
		return strings.Contains(page, "Conversations to index") && w.metric("gatehouse_index_conversations_pending") == 1
	})
}
