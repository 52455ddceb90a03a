package telegramtest

import (
	"net/netip"
	"strconv"
	"strings"
)

// checkLink reports what is wrong with a link's URL, or "" ([td] LinkManager.cpp
// check_link_impl and HttpUrl.cpp parse_url: http, https, tg, ton and tonsite;
// a host, with a dot unless it is an IPv6 address; a port within bounds).
func checkLink(link string) string {
	rest := link
	lower := strings.ToLower(link)
	deep := false
	for _, scheme := range []string{"tg:", "ton:", "tonsite:"} {
		if strings.HasPrefix(lower, scheme) {
			rest, deep = strings.TrimPrefix(link[len(scheme):], "//"), true
			break
		}
	}
	if i := strings.IndexAny(rest, ":/?#@[]"); i >= 0 && strings.HasPrefix(rest[i:], "://") {
		if s := strings.ToLower(rest[:i]); s != "http" && s != "https" {
			return "Unsupported URL protocol"
		}
		rest = rest[i+3:]
	}
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		rest = rest[:i]
	}
	host := rest[strings.LastIndexByte(rest, '@')+1:]
	if i := strings.LastIndexByte(host, ':'); i > 0 && !strings.Contains(host[i:], "]") {
		if port, err := strconv.Atoi(host[i+1:]); err != nil || port <= 0 || port > 65535 {
			return "Wrong port number specified in the URL"
		}
		host = host[:i]
	}
	if strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]") {
		if _, err := netip.ParseAddr(host[1 : len(host)-1]); err != nil {
			return "Wrong IPv6 address specified in the URL"
		}
		return ""
	}
	switch {
	case host == "":
		return "URL host is empty"
	case host == ".":
		return "Host is invalid"
	case !deep && !strings.Contains(host, "."):
		return "Wrong HTTP URL"
	}
	return ""
}
