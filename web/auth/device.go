package auth

import (
	"net/http"
	"time"

	"gatehouse/web"
	"gatehouse/web/auth/proof"
)

// DeviceCookie is the name, before web.CookieName, of the cookie that a good sign-in leaves. It opens
// nothing: a browser that has it is not slowed by others' wrong passwords.
const DeviceCookie = "gatehouse_device"

// device returns the id of the known device that the request comes from, ""
// when it comes from another. A device that waits after its own wrong tries is
// unknown for that time, so that a stolen cookie locks no one out.
func (a *Admins) device(r *http.Request, acc account, known bool) string {
	c, err := r.Cookie(web.CookieName(r, DeviceCookie))
	if err != nil {
		return ""
	}
	claim, ok := a.proofs.Read(proof.Device, c.Value)
	encoded := a.hasher.Nobody()
	if known {
		encoded = acc.Hash
	}
	if !a.proofs.Proves(claim, encoded) || !ok || !known || claim.User != acc.User || a.devices.Wait(claim.ID) > 0 {
		return ""
	}
	return claim.ID
}

// remember makes the request's browser a known device of acc, until its password is replaced.
func (a *Admins) remember(w http.ResponseWriter, r *http.Request, acc account) {
	http.SetCookie(w, &http.Cookie{Name: web.CookieName(r, DeviceCookie), Value: a.proofs.Make(proof.Device, acc.User, acc.Hash), Path: "/admin",
		MaxAge: int(proof.Device.Life() / time.Second), HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: a.o.Secure(r)})
}
