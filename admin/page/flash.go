package page

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"

	"gatehouse/core"
	"gatehouse/web"
)

// flashCookie carries one message over the redirect that follows a form.
const flashCookie = "gatehouse_flash"

// maxFlash bounds the message, in bytes, so that the cookie stays small.
const maxFlash = 600

// A Flash is the message after a form, shown once on the next page.
type Flash struct {
	Kind string `json:"k"` // good, note, bad
	Text string `json:"t"`
}

// Good returns a flash of success.
func Good(text string) Flash { return Flash{Kind: "good", Text: text} }

// Note returns a flash that is neither success nor fault.
func Note(text string) Flash { return Flash{Kind: "note", Text: text} }

// SetFlash signs said with the process's key: another program on this host must not
// write on this page.
func (f *Frame) SetFlash(w http.ResponseWriter, r *http.Request, said Flash) {
	said.Text = core.CutRunes(said.Text, maxFlash)
	body, err := json.Marshal(said)
	if err != nil {
		return // a struct of two strings always encodes
	}
	value := base64.RawURLEncoding.EncodeToString(body) + "." + f.sign(body)
	http.SetCookie(w, f.cookie(r, value, 60))
}

// takeFlash returns the message and removes it, or nil.
func (f *Frame) takeFlash(w http.ResponseWriter, r *http.Request) *Flash {
	c, err := r.Cookie(web.CookieName(r, flashCookie))
	if err != nil {
		return nil
	}
	http.SetCookie(w, f.cookie(r, "", -1))
	text, mac, _ := strings.Cut(c.Value, ".")
	body, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || !hmac.Equal([]byte(mac), []byte(f.sign(body))) {
		return nil
	}
	var said Flash
	if json.Unmarshal(body, &said) != nil {
		return nil
	}
	return &said
}

func (f *Frame) sign(body []byte) string {
	h := hmac.New(sha256.New, f.key[:])
	h.Write(body)
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}

func (f *Frame) cookie(r *http.Request, value string, age int) *http.Cookie {
	return &http.Cookie{
		Name: web.CookieName(r, flashCookie), Value: value, Path: "/admin", MaxAge: age,
		HttpOnly: true, Secure: web.From(r.Context()).HTTPS, SameSite: http.SameSiteStrictMode,
	}
}
