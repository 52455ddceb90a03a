package tool

import (
	"net/url"
	"strings"

	"golang.org/x/net/idna"

	"gatehouse/core"
)

// Host returns the host of u as it is looked up: lower case, international
// names in their ASCII form, without a port and without a final dot. It is
// core.Invalid where the name is no host name.
func Host(u *url.URL) (string, error) {
	host := strings.TrimSuffix(u.Hostname(), ".")
	if strings.ContainsFunc(host, func(r rune) bool { return r >= 0x80 }) {
		ascii, err := idna.Lookup.ToASCII(host)
		if err != nil {
			return "", core.Errorf(core.Invalid, "the address has a host name that is not valid")
		}
		host = ascii
	}
	if host == "" {
		return "", core.Errorf(core.Invalid, "the address names no host")
	}
	return strings.ToLower(host), nil
}
