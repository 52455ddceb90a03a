package api

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"gatehouse/core"
	"gatehouse/web/api/bots"
	"gatehouse/web/auth"
)

// Files are sent with a message of a bot, as with one to it: in JSON or as a
// form, next to files of the vault.
func TestSendMessage_WithFiles(t *testing.T) {
	h := open(t, options{})
	furnish(h, 7)
	key := h.key(auth.ScopeSend)
	form := "--b\r\nContent-Disposition: form-data; name=chat\r\n\r\nc1\r\n--b\r\nContent-Disposition: form-data; name=attachments\r\n\r\nNotes/a.md\r\n" +
		"--b\r\nContent-Disposition: form-data; name=upload; filename=\"../log.txt\"\r\n\r\nall is well\r\n--b--\r\n"
	for kind, body := range map[string]string{
		"application/json":                `{"attachments":["Notes/a.md",{"name":"../log.txt","data":"` + b64("all is well") + `"}],"chat":"c1"}`,
		"multipart/form-data; boundary=b": form,
	} {
		h.want(202, "", key, "POST", "/api/bots/one/messages", body, "Content-Type", kind)
		m := h.unasked
		if m.Chat != "c1" || !slices.Equal(m.Attachments, []string{"Notes/a.md"}) || len(m.Files) != 1 || h.content(m.Files[0]) != "all is well" || !strings.HasSuffix(m.Files[0].Path, "-log.txt") {
			t.Errorf("%s: %+v", kind, m)
		}
	}
}

func TestSendMessage_RemovesFilesOfARefusedMessage(t *testing.T) {
	h := open(t, options{})
	furnish(h, 7)
	h.ledger.bound = map[int64]int64{8: 0}
	file := func(name, data string) string { return fmt.Sprintf(`{"name":%q,"data":%q}`, name, b64(data)) }
	one := file("ok.txt", "fine")
	for _, c := range []struct {
		user          int64
		body          string
		status        int
		problem, says string
	}{
		{7, `{"attachments":[` + one + `]}`, 400, "invalid-request", "chat"},
		{7, `{"chat":"c1","attachments":[` + one + `,` + file("x", elfBytes) + `]}`, 400, "invalid-request", "programs are not taken"},
		{7, `{"chat":"c1","attachments":[` + one + `,{"name":"x","data":"*"}]}`, 400, "invalid-request", "not base64"},
		{7, `{"chat":"c1","attachments":[` + one + `,{"path":"Notes/a.md"}]}`, 400, "invalid-request", "a path of a file in the vault is none"},
		{7, `{"chat":"c1","attachments":[` + strings.Repeat(one+",", bots.MaxSendFiles) + `"Notes/a.md"]}`, 400, "invalid-request", "at most 5 files"},
		{7, `{"chat":"c1","attachments":[` + one + `],"text":"` + strings.Repeat("x", bots.MaxText+1) + `"}`, 413, "too-large", "text"},
		{8, `{"chat":"c1","attachments":[` + one + `]}`, 507, "storage-full", "no more room"},
	} {
		m := h.want(c.status, c.problem, h.keyOf(c.user, core.Vault, auth.ScopeSend), "POST", "/api/bots/one/messages", c.body)
		if detail, _ := m["detail"].(string); !strings.Contains(detail, c.says) {
			t.Errorf("%.80s: %s", c.body, detail)
		}
		if names := h.kept(); len(names) != 0 {
			t.Errorf("%.80s: left behind %v", c.body, names)
		}
	}
	h.want(415, "unsupported-media-type", h.key(auth.ScopeSend), "POST", "/api/bots/one/messages", "chat=c1", "Content-Type", "application/x-www-form-urlencoded")
}
