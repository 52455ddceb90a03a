package permission

import (
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"

	"github.com/bmatcuk/doublestar/v4"

	"gatehouse/core"
)

// inArea reports whether a turn of user at trust may read the vault file name: a
// cleaned name, symbolic links resolved, that is not on the deny list.
//
//   - full, vault: every file.
//   - sandboxed: the user's own Guests/{user}/ and what globs name
//     (doublestar; "*" does not cross "/"; upper and lower case differ), but
//     never the gateway's own directories, the owner's chats and journal, or
//     another guest's directory, whatever globs say.
//   - a stranger: nothing.
func inArea(globs []string, trust core.Trust, user int64, name string) bool {
	switch trust {
	case core.Full, core.Vault:
		return true
	case core.Sandboxed:
		return guestMayRead(globs, user, name)
	}
	return false
}

// cleaned returns name without "." elements and doubled slashes.
func cleaned(name string) (string, bool) {
	if name == "" || strings.HasPrefix(name, "/") || strings.ContainsRune(name, '\\') {
		return "", false
	}
	if strings.ContainsFunc(name, unicode.IsControl) || slices.Contains(strings.Split(name, "/"), "..") {
		return "", false
	}
	return path.Clean(name), true
}

func guestMayRead(globs []string, user int64, name string) bool {
	if name == "." {
		return false
	}
	first, rest, _ := strings.Cut(name, "/")
	if slices.Contains(ownersOnly, folded(first)) {
		return false
	}
	if folded(first) == folded(core.GuestsDir) {
		person, _, _ := strings.Cut(rest, "/")
		own := strconv.FormatInt(user, 10)
		if rest != "" && person != own {
			return false
		}
		if user > 0 && first == core.GuestsDir && person == own {
			return true
		}
	}
	return slices.ContainsFunc(globs, func(g string) bool { return matches(g, name) })
}

// matches reports whether a glob (doublestar; "*" does not cross "/") names the
// file. A relative glob never matches an absolute name, nor the other way round.
func matches(glob, name string) bool {
	if strings.HasPrefix(glob, "/") != strings.HasPrefix(name, "/") {
		return false
	}
	ok, err := doublestar.Match(strings.TrimPrefix(glob, "./"), name)
	return ok && err == nil
}

// ownersOnly are the top directories and files no guest reads.
var ownersOnly = []string{".claude", ".parachute", "chat", "daily", ".mcp.json"}

// Elements of a path that are private wherever they are, as a file or a
// directory. Compared in lower case, because some file systems know no other.
var (
	privateNames = []string{
		"credentials", "credentials.json", "credentials.yaml", "credentials.yml", ".credentials", ".credentials.json",
		"client_secret.json", "service-account.json", "secrets.json", "secrets.yaml", "secrets.yml",
		".netrc", "_netrc", ".npmrc", ".pypirc", ".pgpass", ".my.cnf", ".htpasswd", ".git-credentials", ".dockercfg", ".vault-token",
		".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker",
	}
	privateBegins = []string{".env", "id_"}
	privateEnds   = []string{".env", ".pem", ".key", ".p12", ".pfx", ".ppk", ".jks", ".keystore", ".kdbx"}
)

// private reports whether an element of a path, folded, is private.
func private(part string) bool {
	return slices.Contains(privateNames, part) ||
		slices.ContainsFunc(privateBegins, func(s string) bool { return strings.HasPrefix(part, s) }) ||
		slices.ContainsFunc(privateEnds, func(s string) bool { return strings.HasSuffix(part, s) })
}

// denied is the deny list, which holds at every level.
func denied(name string) bool {
	parts := strings.Split(folded(name), "/")
	if slices.ContainsFunc(parts, private) {
		return true
	}
	for i, p := range parts {
		below := parts[i+1:]
		switch {
		case p == ".parachute" && (len(below) == 0 || below[0] != "agents" && below[0] != "skills"):
			return true
		case p == ".git" && len(below) > 0 && slices.Contains([]string{"objects", "refs", "hooks", "credentials"}, below[0]):
			return true
		case p == ".claude" && len(below) > 0 && below[0] == "projects":
			return true
		case p == "chat" && len(below) > 0 && strings.Contains(below[len(below)-1], ".db"):
			return true
		}
	}
	return false
}

// holdsCredentials are files that may name a password next to other things: they
// are read at full only, where their owner asks for it.
func holdsCredentials(name string) bool {
	return strings.HasSuffix("/"+folded(name), "/.git/config")
}

// folded returns s as a forgiving file system would compare it: in one case, without
// invisible format characters, without dots and spaces at an element's end.
func folded(s string) string { return foldedBy(s, foldCase) }

func foldedBy(s string, fold func(string) string) string {
	if plain(s) {
		return s
	}
	parts := strings.Split(s, "/")
	for i, p := range parts {
		f := fold(p)
		if f == "" {
			f = p // a name of such characters alone is one
		}
		if t := strings.TrimRight(f, ". "); t != "" {
			f = t
		}
		parts[i] = f
	}
	return strings.Join(parts, "/")
}

// plain reports whether folded would leave s as it is, as it does most names.
func plain(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 0x80, 'A' <= c && c <= 'Z':
			return false
		case (c == '.' || c == ' ') && (i+1 == len(s) || s[i+1] == '/'):
			return false
		}
	}
	return true
}

// foldCase brings letters that differ in case only (ſ and K too) to one form, takes
// letters apart that some file systems do not tell from several (ß, ﬁ), and drops characters
// that are not shown, as those file systems do: format characters, variation selectors,
// fillers.
func foldCase(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return r >= 0x80 }) {
		s = severalLetters().Replace(s)
	}
	return foldSimply(s)
}

// foldSimply is foldCase without taking letters apart: one letter stays one.
func foldSimply(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x80 {
			return unicode.ToLower(r)
		}
		if unicode.In(r, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point) {
			return -1
		}
		least := r
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			least = min(least, f)
		}
		return unicode.ToLower(least)
	}, s)
}

// severalLetters replaces what case folding makes several letters of ASCII of.
var severalLetters = sync.OnceValue(func() *strings.Replacer {
	return strings.NewReplacer("ß", "ss", "ẞ", "ss", "ﬀ", "ff", "ﬁ", "fi", "ﬂ", "fl", "ﬃ", "ffi", "ﬄ", "ffl", "ﬅ", "st", "ﬆ", "st")
})
