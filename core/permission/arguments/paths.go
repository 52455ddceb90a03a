package arguments

import (
	"net/url"
	"slices"
	"strings"
)

// remote are the schemes of addresses that name nothing on this machine.
var remote = map[string]bool{"http": true, "https": true, "ws": true, "wss": true, "ftp": true, "ftps": true, "sftp": true, "ssh": true, "git": true}

// Paths returns what a text may be to a server that opens files: the text itself, decoded, and
// the path of an address, with and without what URLs add. It returns none for an address of
// something elsewhere. One with "..", which a server may resolve away with all before it, is not; nor
// is one for which exists reports that there is a file by the name of its scheme.
func Paths(s string, exists func(name string) bool) []string {
	if s = strings.TrimSpace(s); s == "" {
		return nil
	}
	forms := []string{s}
	if scheme, rest, ok := address(s); ok {
		if remote[strings.ToLower(scheme)] && !climbs(rest) && !exists(scheme+":") {
			return nil
		}
		forms = append(forms, rest)
		if _, path, ok := strings.Cut(rest, "/"); ok { // behind a host
			forms = append(forms, "/"+path)
		}
		for _, f := range slices.Clone(forms) {
			if i := strings.IndexAny(f, "?#"); i >= 0 {
				forms = append(forms, f[:i])
			}
		}
	}
	for _, f := range slices.Clone(forms) {
		forms = append(forms, decoded(f)...)
	}
	return forms
}

// address splits "scheme://rest", and "file:rest".
func address(s string) (scheme, rest string, ok bool) {
	scheme, rest, ok = strings.Cut(s, ":")
	if !ok || !isScheme(scheme) {
		return "", "", false
	}
	rest, slashes := strings.CutPrefix(rest, "//")
	return scheme, rest, slashes || strings.EqualFold(scheme, "file")
}

func isScheme(s string) bool {
	for i, r := range s {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !letter && (i == 0 || !strings.ContainsRune("0123456789+.-", r)) {
			return false
		}
	}
	return s != ""
}

// climbs reports whether an element is "..".
func climbs(rest string) bool {
	return slices.ContainsFunc(append(decoded(rest), rest), func(f string) bool { return slices.Contains(strings.Split(f, "/"), "..") })
}

// decoded returns s with slashes for backslashes, and without escapes of URLs, where it has any.
func decoded(s string) (forms []string) {
	if plain, err := url.PathUnescape(s); err == nil && plain != s {
		forms = append(forms, strings.ReplaceAll(plain, `\`, "/"))
	}
	if strings.Contains(s, `\`) {
		forms = append(forms, strings.ReplaceAll(s, `\`, "/"))
	}
	return forms
}
