package main

import (
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"gatehouse/core/index/chunk"
	"gatehouse/core/index/document"
)

func TestThePanelFindsWhatWasSaidAndWhatTheVaultHas(t *testing.T) {
	t.Parallel()
	w, _ := newModelWorld(t, nil)
	ada := w.guest("Ada")
	w.answers(ada.DM(), ada.Send("Who makes the quince marmalade?").ID)
	w.quiet()
	const note = "Kitchen/Jam & <jelly>.md"
	file := filepath.Join(w.cfg.VaultPath, filepath.FromSlash(note))
	if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("# Jam\n\nThe marmalade needs <b>two</b> days.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{note, ".parachute/marmalade.md"} {
		err := w.app.library.Documents.Put(t.Context(), document.Document{File: document.File{Path: path, Hash: "h"}, Title: "Jam", Chunks: []chunk.Chunk{{Text: "The marmalade needs <b>two</b> days.", Line: 3}}})
		if err != nil {
			t.Fatal(err)
		}
	}
	b := w.browser()
	var page string
	w.until("the message is found", func() bool {
		page = b.page("/admin/search?q=marmalade")
		return strings.Contains(page, "/admin/search/message?")
	})
	for _, want := range []string{`quince <mark>marmalade</mark>?`, "<bdi>Ada</bdi>", `The <mark>marmalade</mark> needs &lt;b&gt;two&lt;/b&gt; days.`, "Kitchen/Jam &amp; &lt;jelly&gt;.md:3"} {
		if !strings.Contains(page, want) {
			t.Errorf("the results lack %q:\n%s", want, page)
		}
	}
	if strings.Contains(page, ".parachute") {
		t.Error("a file of the deny list is found")
	}
	link := regexp.MustCompile(`href="(/admin/search/message\?[^"]+)"`).FindStringSubmatch(page)
	if link == nil {
		t.Fatal("no link to the message")
	}
	if chat := b.page(strings.ReplaceAll(link[1], "&amp;", "&")); !strings.Contains(chat, "Who makes the quince marmalade?") {
		t.Errorf("the link leads to %s", chat)
	}
	if text := b.page("/admin/search/document?line=3&path=" + url.QueryEscape(note)); !strings.Contains(text, `<li id="line" aria-current="true">The marmalade needs &lt;b&gt;two&lt;/b&gt; days.</li>`) {
		t.Errorf("the document is shown as %s", text)
	}
}
