package auth

import (
	"crypto/hmac"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"gatehouse/web"
	"gatehouse/web/auth/password"
)

// DeviceCookie is the name, before web.CookieName, of the cookie that a good sign-in leaves. It opens
// nothing: a browser that has it is not slowed by others' wrong passwords.
const DeviceCookie = "gatehouse_device"

// deviceTime is how long a device stays known after its last sign-in.
const deviceTime = 180 * 24 * time.Hour

// maxDevice bounds the cookie's value, in bytes.
const maxDevice = 200

// device returns the id of the known device that the request comes from, ""
// when it comes from another. A device that waits after its own wrong tries is
// unknown for that time, so that a stolen cookie locks no one out.
func (a *Admins) device(r *http.Request, acc account, known bool) string {
	c, err := r.Cookie(web.CookieName(r, DeviceCookie))
	if err != nil || len(c.Value) > maxDevice {
		return ""
	}
	said, mac, _ := strings.Cut(c.Value, "~")
	parts := strings.Split(said, ".") // user, end, id
	encoded := a.hasher.Nobody()
	if known {
		encoded = acc.Hash
	}
	if !hmac.Equal([]byte(mac), []byte(password.Seal(encoded, said))) || !known || len(parts) != 3 || parts[0] != strconv.FormatInt(acc.User, 10) {
		return ""
	}
	end, err := strconv.ParseInt(parts[1], 10, 64)
	if err != nil || !a.clock.Now().Before(time.Unix(end, 0)) || a.devices.Wait(parts[2]) > 0 {
		return ""
	}
	return parts[2]
}

// remember makes the request's browser a known device of acc, until its password is replaced.
func (a *Admins) remember(w http.ResponseWriter, r *http.Request, acc account) {
	said := fmt.Sprintf("%d.%d.%s", acc.User, a.clock.Now().Add(deviceTime).Unix(), random(16))
	http.SetCookie(w, &http.Cookie{Name: web.CookieName(r, DeviceCookie), Value: said + "~" + password.Seal(acc.Hash, said), Path: "/admin", MaxAge: int(deviceTime / time.Second),
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: a.o.Secure(r)})
}
