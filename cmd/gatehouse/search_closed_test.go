package main

import (
	"fmt"
	"strings"
	"testing"

	"gatehouse/configs"
	"gatehouse/core/llm/embedtest"
)

func TestTextsThatWereClosedBeforeTheStartAreNotSentToTheEmbeddingServer(t *testing.T) {
	t.Parallel()
	server := embedtest.New(t, 64)
	w, _ := newModelWorld(t, func(*configs.Config) {})
	for i := range 40 {
		w.put(fmt.Sprintf("AAA/%03d.md", i), "# Diary\n\nA secret.\n")
	}
	w.put("Notes/n.md", "# Notes\n\nSomething else.\n")
	w.app.library.Crawler.Kick()
	w.until("it is indexed", func() bool { return w.count(`SELECT count(*) FROM chunks WHERE chunk_text LIKE '%secret%'`) == 40 })
	w.stop()
	w.put(".parachuteignore", "AAA/\n")
	w.cfg.EmbedURL, w.cfg.EmbedModel = server.URL, "small"
	w.start()
	w.until("all is embedded", func() bool { return w.count(`SELECT count(*) FROM chunks WHERE embedder = 0`) == 0 })
	if n := w.count(`SELECT count(*) FROM chunks WHERE chunk_text LIKE '%secret%'`); n != 0 {
		t.Errorf("%d closed passages are indexed", n)
	}
	if sent := strings.Join(server.Asked(), "\n"); !strings.Contains(sent, "Something else") || strings.Contains(sent, "secret") {
		t.Errorf("the server got %q", sent)
	}
}
