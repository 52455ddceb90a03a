package api

import (
	"context"
	"strings"
	"testing"

	"gatehouse/core"
	"gatehouse/core/index/chunk"
	indexed "gatehouse/core/index/document"
	"gatehouse/core/store"
	"gatehouse/web/api/passages"
	"gatehouse/web/auth"
)

// passages has the real index. Who is sandboxed reads what is below Public.
func (h *harness) passages() passages.Options {
	everyone := func(context.Context, store.Queryer, int64) (bool, error) { return true, nil }
	return passages.Options{
		Index: indexed.New(h.db, everyone),
		MayRead: func(trust core.Trust, _ int64, name string) bool {
			return trust >= core.Vault || strings.HasPrefix(name, "Public/")
		},
		Refill: func() { h.mu.Lock(); h.refilled++; h.mu.Unlock() },
	}
}

// teaChunks is the address of a document that every key reads.
var teaChunks = "/api/index/" + indexed.ID("Public/Tea.md") + "/chunks"

// document indexes one.
func (h *harness) document(path string, texts ...string) {
	h.t.Helper()
	d := indexed.Document{File: indexed.File{Path: path, Hash: "h"}, Title: "Tea"}
	for i, text := range texts {
		d.Chunks = append(d.Chunks, chunk.Chunk{Text: text, Line: i + 1})
	}
	if err := h.passages().Index.(*indexed.Store).Put(h.t.Context(), d); err != nil {
		h.t.Fatal(err)
	}
}

func TestPassagesOfADocumentAreListedAddedAndDeletedByAdmins(t *testing.T) {
	h := open(t, options{})
	h.document("Notes/Tea.md", "passage 0", "passage 1", "passage 2", "passage 3", "passage 4")
	id := indexed.ID("Notes/Tea.md")
	at := "/api/index/" + id + "/chunks"
	admin := h.keyOf(core.Operator, core.Vault, auth.ScopeAdmin)

	var texts []string
	for cursor := ""; ; {
		page := h.want(200, "", admin, "GET", at+"?limit=2&cursor="+cursor, "")
		for _, c := range page["chunks"].([]any) {
			texts = append(texts, c.(map[string]any)["text"].(string))
		}
		if cursor = page["next"].(string); cursor == "" {
			break
		}
	}
	if got := strings.Join(texts, ","); got != "passage 0,passage 1,passage 2,passage 3,passage 4" {
		t.Errorf("over all pages %s", got)
	}
	h.want(204, "", admin, "PUT", at, `{"chunks":[{"field":"summary","text":"How to brew."}]}`)
	page := h.want(200, "", admin, "GET", at+"?field=summary", "")
	if list := page["chunks"].([]any); len(list) != 1 || list[0].(map[string]any)["id"] != "chunk:"+id+":summary:0" || page["path"] != "Notes/Tea.md" {
		t.Errorf("added is %v", page)
	}
	for _, body := range []string{`{"chunks":[]}`, `{}`, `{"chunks":[{"field":"content","text":"x"}]}`, `{"chunks":[{"field":"a"}]}`, `{"chunks":[{"field":"a","text":"\u0000"}]}`, `{"chunks":7}`, `[]`} {
		h.want(400, "", admin, "PUT", at, body)
	}
	h.want(400, "", admin, "GET", at+"?limit=0", "")
	h.want(400, "", admin, "GET", at+"?cursor=gone", "")
	h.want(404, "", admin, "GET", "/api/index/doc:none/chunks", "")

	guest := h.keyOf(7, core.Sandboxed, auth.ScopeAdmin)
	for method, body := range map[string]string{"GET": "", "PUT": `{"chunks":[{"field":"a","text":"x"}]}`, "DELETE": ""} {
		h.want(403, "", h.key(auth.ScopeRead, auth.ScopeChat), method, at, body)
		h.want(404, "", guest, method, at, body) // its trust does not read the file
	}
	h.want(204, "", admin, "DELETE", at, "")
	if page := h.want(200, "", admin, "GET", at, ""); len(page["chunks"].([]any)) != 0 || h.refilled != 1 {
		t.Errorf("after it was deleted: %v, indexed again %d times", page, h.refilled)
	}
}
