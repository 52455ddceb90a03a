package admin

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"

	"gatehouse/core"
)

// flashCookie carries one sentence over the redirect that follows a form.
const flashCookie = "gatehouse_flash"

// maxFlash bounds the sentence, in bytes, so that the cookie stays small.
const maxFlash = 600

// A flash is what a decision had to say, shown once on the next page.
type flash struct {
	Kind string `json:"k"` // good, note, bad
	Text string `json:"t"`
}

func good(text string) flash { return flash{Kind: "good", Text: text} }

// setFlash signs f with the process's key: cookies do not know ports, and
// another program on this host must not put words on this page.
func (p *Panel) setFlash(w http.ResponseWriter, r *http.Request, f flash) {
	f.Text = core.CutRunes(f.Text, maxFlash)
	body, err := json.Marshal(f)
	if err != nil {
		return // a struct of two strings always encodes
	}
	value := base64.RawURLEncoding.EncodeToString(body) + "." + p.sign(body)
	http.SetCookie(w, p.cookie(r, value, 60))
}

// takeFlash reads and removes the sentence.
func (p *Panel) takeFlash(w http.ResponseWriter, r *http.Request) *flash {
	c, err := r.Cookie(flashCookie)
	if err != nil {
		return nil
	}
	http.SetCookie(w, p.cookie(r, "", -1))
	text, mac, _ := strings.Cut(c.Value, ".")
	body, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || !hmac.Equal([]byte(mac), []byte(p.sign(body))) {
		return nil
	}
	var f flash
	if json.Unmarshal(body, &f) != nil {
		return nil
	}
	return &f
}

func (p *Panel) sign(body []byte) string {
	h := hmac.New(sha256.New, p.key[:])
	h.Write(body)
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}

func (p *Panel) cookie(r *http.Request, value string, age int) *http.Cookie {
	return &http.Cookie{
		Name: flashCookie, Value: value, Path: "/admin", MaxAge: age,
		HttpOnly: true, Secure: r.TLS != nil, SameSite: http.SameSiteStrictMode,
	}
}
