package api

import (
	"strings"
	"testing"

	"gatehouse/core"
	"gatehouse/core/contexts"
	apicontexts "gatehouse/web/api/contexts"
	"gatehouse/web/auth"
)

// contexts returns real ones in the harness's vault: trust vault reads all but Private,
// and guests one of them.
func (h *harness) contexts() apicontexts.Options {
	return apicontexts.Options{Store: contexts.New(h.vault), May: func(trust core.Trust, _ int64, name string) bool {
		return (trust >= core.Vault || name == contexts.Dir+"/guests.json") && !strings.HasPrefix(name, "Private")
	}}
}

func (h *harness) context() {
	h.t.Helper()
	if _, err := contexts.New(h.vault).Put(contexts.Context{Name: "my-project", Folders: []string{"Notes", "Private"}}); err != nil {
		h.t.Fatal(err)
	}
}

func TestSavedContexts_AreKeptWithPathsThatTheReaderMayRead(t *testing.T) {
	h := open(t, options{})
	key, low := h.key(auth.ScopeChat), h.keyOf(7, core.Sandboxed, auth.ScopeChat)
	const at = "/api/contexts/my-project"
	h.want(404, "not-found", key, "GET", at, "")
	made := h.want(200, "", key, "PUT", at, `{"description":"The shed","folders":["Notes/"],"files":["Plan.md"]}`)
	if made["name"] != "my-project" || made["folders"].([]any)[0] != "Notes" {
		t.Errorf("%v", made)
	}
	h.want(403, "forbidden", key, "PUT", at, `{"folders":["Private"]}`)
	h.want(400, "invalid-request", key, "PUT", at, `{"folders":["../x"]}`)
	h.want(400, "invalid-request", key, "PUT", "/api/contexts/.hidden", `{}`)
	h.want(400, "invalid-request", key, "PUT", at, `{"folders":"x"}`)
	h.context()
	if got := h.want(200, "", key, "GET", at, ""); len(got["folders"].([]any)) != 1 {
		t.Errorf("%v", got)
	}
	h.want(403, "forbidden", low, "GET", at, "")
	h.want(403, "forbidden", low, "PUT", at, `{}`)
	h.want(403, "forbidden", low, "DELETE", at, "")
	const theirs = "/api/contexts/guests"
	h.want(200, "", key, "PUT", theirs, `{}`)
	h.want(200, "", low, "GET", theirs, "")
	h.want(403, "forbidden", low, "PUT", theirs, `{}`) // what a guest may read is not theirs to change
	h.want(403, "forbidden", low, "DELETE", theirs, "")
	h.want(204, "", key, "DELETE", at, "")
	h.want(404, "not-found", key, "DELETE", at, "")
}
