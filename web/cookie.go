package web

import (
	"net"
	"net/http"
	"strconv"
)

// CookieName returns name with the port of the address that the request was sent to,
// or name for an address without a port. Browsers send cookies to every port of a
// host (RFC 6265, 8.5), so two gateways on one host would overwrite each other's.
func CookieName(r *http.Request, name string) string {
	_, port, err := net.SplitHostPort(r.Host)
	if err != nil {
		return name
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return name
	}
	return name + "_" + port
}
