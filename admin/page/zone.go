package page

import (
	"net/http"
	"time"

	"gatehouse/core"
	"gatehouse/web"
)

// zoneCookie keeps the browser's time zone, as charts.js sets it.
const zoneCookie = "gatehouse_zone"

// zoneNames are names of the time zone database; "Local" would be the gateway's own.
var zoneNames = core.Pattern(`^[A-Z][A-Za-z0-9_+-]{1,30}(/[A-Za-z0-9_+-]{1,30}){0,2}$`)

// Zone returns the time zone of r's browser, for what the browser can't rewrite; UTC
// while it is not known.
func Zone(r *http.Request) *time.Location {
	c, err := r.Cookie(ZoneCookie(r))
	if err != nil || !zoneNames().MatchString(c.Value) || c.Value == "Local" {
		return time.UTC
	}
	zone, err := time.LoadLocation(c.Value)
	if err != nil {
		return time.UTC
	}
	return zone
}

// ZoneCookie returns the name of the cookie that keeps the zone.
func ZoneCookie(r *http.Request) string { return web.CookieName(r, zoneCookie) }
