package api

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io/fs"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"reflect"
	"strings"
	"testing"

	"gatehouse/core"
	"gatehouse/core/attach"
	"gatehouse/web/api/turns"
	"gatehouse/web/auth"
	"gatehouse/web/upload"
)

const (
	pngBytes = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"
	elfBytes = "\x7fELF\x02\x01\x01\x00 and so on"
)

func b64(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

// kept returns the files in the vault's directory for attachments.
func (h *harness) kept() (names []string) {
	h.t.Helper()
	_ = fs.WalkDir(h.vault.Root().FS(), attach.Folder, func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			names = append(names, name)
		}
		return nil
	})
	return names
}

func (h *harness) content(f core.File) string {
	h.t.Helper()
	b, err := fs.ReadFile(h.vault.Root().FS(), f.Path)
	if err != nil {
		h.t.Error(err)
	}
	return string(b)
}

func TestUpload_JSONAttachmentsAreStoredWithTheTurn(t *testing.T) {
	h := open(t, options{})
	key := h.key(auth.ScopeChat)
	h.onPut = func(in core.Inbound) { h.reply(in, "ok") }
	long := strings.Repeat("0123456789abcde", 5000)
	body := fmt.Sprintf(`{"attachments":[{"data":%q,"name":"../photo.txt","type":"text/plain"},{"fileName":"a.txt","mimeType":"text/plain","data":%q},{"name":"b.bin","data":%q},{"name":"c","data":%q}],"message":"look"}`,
		b64(pngBytes), "data:text/plain;base64,"+b64("some words"), base64.RawURLEncoding.EncodeToString([]byte{0xfb, 0xff, 0xfe, 1}), b64(long))
	body = strings.Replace(body, "iVBORw0K", `iVBORw0\u004b\n`, 1) // escapes are of JSON, and base64 may come in lines
	h.want(200, "", key, "POST", "/api/chat", body, "Accept", "application/json")
	files := h.last().Files
	if len(files) != 4 {
		t.Fatalf("%+v", files)
	}
	for i, want := range []struct{ data, name, kind string }{{pngBytes, "../photo.txt", "image/png"}, {"some words", "a.txt", "text/plain"}, {"\xfb\xff\xfe\x01", "b.bin", "application/octet-stream"}, {long, "c", "text/plain"}} {
		f := files[i]
		if h.content(f) != want.data || f.Name != want.name || f.Type != want.kind || f.Size != int64(len(want.data)) || !strings.HasPrefix(f.Path, "Chat/assets/") {
			t.Errorf("%d: %+v", i, f)
		}
	}
	if len(h.kept()) != 4 {
		t.Errorf("%v", h.kept())
	}
}

// formBody is a multipart body; a name with a colon is a file's.
func formBody(t *testing.T, parts ...string) (body, kind string) {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for i := 0; i < len(parts); i += 2 {
		field, file, isFile := strings.Cut(parts[i], ":")
		header := textproto.MIMEHeader{"Content-Disposition": {fmt.Sprintf(`form-data; name=%q`, field)}}
		if isFile {
			header = textproto.MIMEHeader{"Content-Disposition": {fmt.Sprintf(`form-data; name=%q; filename=%q`, field, file)}, "Content-Type": {"application/octet-stream"}}
		}
		p, err := w.CreatePart(header)
		if err == nil {
			_, err = p.Write([]byte(parts[i+1]))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String(), w.FormDataContentType()
}

func TestUpload_FormAttachmentsAreStoredWithTheTurn(t *testing.T) {
	h := open(t, options{})
	key := h.key(auth.ScopeChat)
	h.onPut = func(in core.Inbound) { h.reply(in, "ok") }
	body, kind := formBody(t, "attachments:photo.bin", pngBytes, "message", "look", "trustLevel", "sandboxed", "contexts", "Tea", "contexts", "Boats", "colour", "red", "attachments:notes.md", "# Notes")
	res := h.do(key, "POST", "/api/chat", body, "Content-Type", kind, "Accept", "application/json")
	if m := h.answer(res); res.StatusCode != 200 || !strings.Contains(res.Header.Get("Warning"), "colour") {
		t.Fatalf("%d %v %v", res.StatusCode, m, res.Header)
	}
	in := h.last()
	if in.Text != "look" || in.Turn.Trust != core.Sandboxed || !reflect.DeepEqual(in.Turn.Contexts, []string{"Tea", "Boats"}) || len(in.Files) != 2 {
		t.Fatalf("%+v %+v", in, in.Turn)
	}
	if in.Files[0].Type != "image/png" || h.content(in.Files[0]) != pngBytes || h.content(in.Files[1]) != "# Notes" {
		t.Errorf("%+v", in.Files)
	}
}

func TestUpload_RefusedAttachmentIsNamedAndNothingIsStored(t *testing.T) {
	h := open(t, options{})
	key := h.key(auth.ScopeChat)
	one := `{"name":"ok.txt","data":"` + b64("fine") + `"}`
	type refused struct {
		body, kind   string
		status       int
		field, words string
	}
	cases := []refused{
		{`{"message":"a","attachments":[` + one + `,{"name":"cat.jpg","data":"` + b64(elfBytes) + `"}]}`, "", 400, "attachments[1]", "cat.jpg is a program for Linux"},
		{`{"message":"a","attachments":[{"data":"` + b64("x") + `","name":"run.exe"}]}`, "", 400, "attachments[0]", "run.exe is a program by its name"},
		{`{"message":"a","attachments":[{"name":"x.txt","data":"%%%"}]}`, "", 400, "attachments[0]", "x.txt is not base64"},
		{`{"message":"a","attachments":[{"name":"x.txt","data":"data:text/plain,hello"}]}`, "", 400, "attachments[0]", "not base64"},
		{`{"message":"a","attachments":[{"name":"x.txt","data":""}]}`, "", 400, "attachments[0]", "x.txt is empty"},
		{`{"message":"a","attachments":[{"path":"Notes/secret.md"}]}`, "", 400, "attachments[0]", "a path of a file in the vault is none"},
		{`{"message":"a","attachments":[{"name":"x","data":["@0"]}]}`, "", 400, "attachments", "list of objects"},
		{`{"message":"a","attachments":["@0"]}`, "", 400, "attachments", "list of objects"},
		{`{"message":"a","attachments":{"data":"` + b64("x") + `"}}`, "", 400, "attachments", "list of objects"},
		{`{"message":"","attachments":[` + one + `]}`, "", 400, "message", ""},
		{`{"message":"a","trust_level":"full","attachments":[` + one + `]}`, "", 403, "", ""},
		{`{"message":"a","attachments":[` + strings.Repeat(one+",", 20) + one + `]}`, "", 413, "attachments", "at most 20 files"},
		{`{"message":"a","attachments":[{"name":"big.bin","data":"` + b64(strings.Repeat("x", attach.MaxFile+1)) + `"}]}`, "", 413, "attachments[0]", "big.bin is larger than 20 MB"},
		{`{"message":"a","attachments":[{"name":"big.bin","data":"` + strings.Repeat("QUJD", upload.MaxJSON/4) + `"}]}`, "", 413, "", ""},
		{`{"message":"a","attachments":[` + one, "", 400, "", "not valid JSON"},
		{`{"a":` + strings.Repeat("[", 100), "", 400, "", "nested"},
	}
	add := func(status int, field, words string, parts ...string) {
		body, kind := formBody(t, parts...)
		cases = append(cases, refused{body, kind, status, field, words})
	}
	add(400, "attachments[1]", "cat.jpg is a program for Linux", "message", "a", "f:ok.txt", "fine", "f:cat.jpg", elfBytes)
	add(400, "message", "", "f:ok.txt", "fine")
	add(400, "message", "there twice", "message", "a", "message", "b")
	add(413, "attachments[0]", "big.bin is larger than 20 MB", "message", "a", "f:big.bin", strings.Repeat("x", attach.MaxFile+1))
	add(413, "", "form holds more", "message", strings.Repeat("x", upload.MaxText+1))
	many := []string{"message", "a"}
	for range 21 {
		many = append(many, "f:ok.txt", "fine")
	}
	add(413, "attachments", "at most 20 files", many...)
	cases = append(cases, refused{"--x\r\nbroken", "multipart/form-data; boundary=x", 400, "", "not a valid form"})
	for _, c := range cases {
		t.Run(fmt.Sprintf("%d %s %s", c.status, c.field, c.words), func(t *testing.T) {
			m := h.want(c.status, "", key, "POST", "/api/chat", c.body, "Content-Type", max(c.kind, "application/json"))
			if got, _ := m["field"].(string); got != c.field || !strings.Contains(fmt.Sprint(m["detail"]), c.words) {
				t.Errorf("%.90s: %v", c.body, m)
			}
			if names := h.kept(); len(names) != 0 {
				t.Errorf("left behind %v", names)
			}
		})
	}
	if len(h.put) != 0 {
		t.Errorf("%d turns were put", len(h.put))
	}
}

func TestUpload_FilesOfARefusedTurnAreRemoved(t *testing.T) {
	h := open(t, options{})
	key := h.key(auth.ScopeChat)
	body := `{"message":"a","attachments":[{"name":"ok.txt","data":"` + b64("fine") + `"}]}`
	h.putErr = core.Errorf(core.Busy, "the disk is full")
	h.want(503, "", key, "POST", "/api/chat", body)
	if names := h.kept(); len(names) != 0 {
		t.Errorf("left behind %v", names)
	}
	h.putErr = nil
	h.onPut = func(in core.Inbound) { h.reply(in, "ok") }
	for range 2 { // the second is the same turn
		h.want(200, "", key, "POST", "/api/chat", body, "Accept", "application/json", "Idempotency-Key", "k")
	}
	h.want(409, "conflict", key, "POST", "/api/chat", strings.Replace(body, b64("fine"), b64("Fine"), 1), "Idempotency-Key", "k")
	if names := h.kept(); len(names) != 1 || h.content(h.last().Files[0]) != "fine" {
		t.Errorf("kept %v", names)
	}
}

// A name is part of what was sent: another one is another request, in a form as in JSON.
func TestUpload_IdempotencyKeyIncludesFileNames(t *testing.T) {
	h := open(t, options{})
	key := h.key(auth.ScopeChat)
	h.onPut = func(in core.Inbound) { h.reply(in, "ok") }
	form := func(name string) (body, kind string) {
		var buf bytes.Buffer
		w := multipart.NewWriter(&buf)
		part, err := w.CreateFormFile("file", name)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = part.Write([]byte("words"))
		_ = w.WriteField("message", "look")
		_ = w.Close()
		return strings.ReplaceAll(buf.String(), w.Boundary(), "b"), "multipart/form-data; boundary=b"
	}
	body, kind := form("a.txt")
	for range 2 {
		h.want(200, "", key, "POST", "/api/chat", body, "Accept", "application/json", "Idempotency-Key", "k", "Content-Type", kind)
	}
	body, kind = form("b.txt")
	h.want(409, "conflict", key, "POST", "/api/chat", body, "Idempotency-Key", "k", "Content-Type", kind)
	if names := h.kept(); len(names) != 1 || len(h.put) != 1 {
		t.Errorf("kept %v of %d turns", names, len(h.put))
	}
}

// The body is not read before the caller is known.
func TestUpload_NothingIsStoredWithoutAKey(t *testing.T) {
	h := open(t, options{})
	body := `{"message":"a","attachments":[{"name":"ok.txt","data":"` + b64("fine") + `"}]}`
	h.want(http.StatusUnauthorized, "unauthorized", "", "POST", "/api/chat", body)
	h.want(http.StatusForbidden, "forbidden", h.key(auth.ScopeRead), "POST", "/api/chat", body)
	if names := h.kept(); len(names) != 0 {
		t.Errorf("left behind %v", names)
	}
}

// A user with too many queued turns is refused before anything of the
// body is kept; others are not concerned.
func TestUpload_TooManyQueuedTurnsIsRefusedBeforeFilesAreStored(t *testing.T) {
	h := open(t, options{})
	h.waiting = map[string]int{"user:7": turns.MaxQueued}
	body := `{"message":"look","attachments":[{"name":"a.txt","data":"d29yZHM="}]}`
	for _, prefer := range []string{"respond-async", ""} {
		res := h.do(h.key("chat"), "POST", "/api/chat", body, "Prefer", prefer)
		if res.StatusCode != http.StatusTooManyRequests || res.Header.Get("Retry-After") == "" {
			t.Errorf("%q: %d, Retry-After %q", prefer, res.StatusCode, res.Header.Get("Retry-After"))
		}
	}
	if names := h.kept(); len(names) != 0 || len(h.put) != 0 {
		t.Errorf("kept %v, %d turns", names, len(h.put))
	}
	if res := h.do(h.keyOf(8, core.Vault, "chat"), "POST", "/api/chat", `{"message":"hello"}`, "Prefer", "respond-async"); res.StatusCode != http.StatusAccepted {
		t.Errorf("somebody else: %d", res.StatusCode)
	}
}

// A file that there is no room for is a problem of its own, before the rest of
// it is read, and nothing of the request is kept.
func TestUpload_FileOverTheQuotaIsStorageFull(t *testing.T) {
	h := open(t, options{})
	h.ledger.bound = map[int64]int64{7: 10, 8: 0}
	body := func(words string) string {
		return `{"message":"look","attachments":[{"name":"fits.txt","data":"` + b64("fine") + `"},{"name":"film.txt","data":"` + b64(words) + `"}]}`
	}
	m := h.want(http.StatusInsufficientStorage, "storage-full", h.key("chat"), "POST", "/api/chat", body("eleven long"))
	if want := "film.txt does not fit any more: your files may take 2 GB, and 10 bytes are left"; m["detail"] != want {
		t.Errorf("%v, want %s", m["detail"], want)
	}
	m = h.want(http.StatusInsufficientStorage, "storage-full", h.keyOf(8, core.Vault, "chat"), "POST", "/api/chat", body("words"))
	if want := "there is no more room for files: your files may take 2 GB"; m["detail"] != want {
		t.Errorf("%v, want %s", m["detail"], want)
	}
	form := "--b\r\nContent-Disposition: form-data; name=message\r\n\r\nlook\r\n--b\r\nContent-Disposition: form-data; name=f; filename=film.txt\r\n\r\neleven long\r\n--b--\r\n"
	h.want(http.StatusInsufficientStorage, "storage-full", h.key("chat"), "POST", "/api/chat", form, "Content-Type", "multipart/form-data; boundary=b")
	if names := h.kept(); len(names) != 0 || len(h.put) != 0 {
		t.Errorf("kept %v, %d turns", names, len(h.put))
	}
	h.onPut = func(in core.Inbound) { h.reply(in, "ok") }
	h.want(200, "", h.keyOf(8, core.Vault, "chat"), "POST", "/api/chat", `{"message":"no file"}`, "Accept", "application/json")
	h.want(200, "", h.keyOf(9, core.Vault, "chat"), "POST", "/api/chat", body("eleven long"), "Accept", "application/json")
}
