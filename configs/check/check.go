// Package check holds what values of settings must be like. Each function returns what is
// wrong with a value, for users, or nil.
package check

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/bmatcuk/doublestar/v4"

	"gatehouse/configs/values"
)

// Group accepts auto, none, or the absolute path of a directory.
func Group(v string) error {
	if v != "auto" && v != "none" && !filepath.IsAbs(v) {
		return errors.New("must be auto, none, or the absolute path of a control group's directory")
	}
	return nil
}

// image is the form of an image's name: host, path, tag and digest.
var image = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:@/-]{0,254}$`) })

// Image accepts the name of an image of containers.
func Image(name string) error {
	if !image().MatchString(name) {
		return errors.New("must be the name of an image, such as localhost/tools:1")
	}
	return nil
}

// Path accepts an absolute path.
func Path(path string) error {
	if !filepath.IsAbs(path) {
		return fmt.Errorf("%q names an unknown home directory: give the whole path", path)
	}
	return nil
}

// HostPort accepts an address with a port.
func HostPort(addr string) error {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("%q is not host:port", addr)
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		return fmt.Errorf("the port %q is not a number", port)
	}
	return Port(n)
}

// Port accepts 0 too, which takes any free port.
func Port(n int) error {
	if n < 0 || n > 65535 {
		return fmt.Errorf("%d is not a port from 0 to 65535", n)
	}
	return nil
}

var hostName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(\[[0-9a-fA-F:]+\]|[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?)(:\d{1,5})?$`)
})

// Host accepts a host name or an IPv6 address, perhaps with a port.
func Host(host string) error {
	if !hostName().MatchString(host) {
		return fmt.Errorf("%q is not a host name: no scheme, no path, no wildcard", host)
	}
	return nil
}

// Origin accepts scheme://host[:port] and nothing behind it.
func Origin(s string) error {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || s != u.Scheme+"://"+u.Host {
		return errors.New("want scheme://host:port with http or https, without a path")
	}
	return nil
}

// Base accepts an http address, perhaps with a path. It may hold a
// password by mistake, so it is not repeated.
func Base(s string) error {
	if s == "" {
		return nil
	}
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return errors.New("want an http or https address without user, query or fragment")
	}
	return nil
}

var telegramToken = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\d+:[A-Za-z0-9_-]+$`) })

// TelegramToken accepts the form of a Telegram bot's token.
func TelegramToken(token string) error {
	if !telegramToken().MatchString(token) {
		return errors.New("does not look like a token from @BotFather: digits, a colon, then letters and digits, without blanks or quotes")
	}
	return nil
}

var discordToken = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z0-9_=-]+\.[A-Za-z0-9_=-]+\.[A-Za-z0-9_=-]+$`)
})

// DiscordToken accepts the form of a Discord bot's token.
func DiscordToken(token string) error {
	if !discordToken().MatchString(token) {
		return errors.New("does not look like a bot's token from the developer portal: three parts of letters and digits with dots between, without \"Bot \" in front")
	}
	return nil
}

// Key accepts a key without blanks.
func Key(s values.Secret) error {
	if strings.ContainsFunc(s.Reveal(), func(r rune) bool { return r <= ' ' || r > '~' }) {
		return errors.New("holds blanks or characters that no key has")
	}
	return nil
}

var userID = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[1-9]\d{0,18}$`) })

// User accepts a numeric user id.
func User(id string) error {
	if !userID().MatchString(id) {
		return fmt.Errorf("%q is not a numeric user id; names can change hands, so they are not accepted", id)
	}
	return nil
}

// Glob accepts a glob for files in the vault.
func Glob(glob string) error {
	if strings.HasPrefix(glob, "/") || slices.Contains(strings.Split(glob, "/"), "..") || !doublestar.ValidatePattern(glob) {
		return fmt.Errorf("%q is not a glob for files in the vault", glob)
	}
	return nil
}

// Private returns what is wrong with a file's mode, and how to fix it: others may
// change the file, or everyone may read the secrets in it.
func Private(path string, mode fs.FileMode, secrets bool) error {
	switch {
	case mode.Perm()&0o022 != 0:
		return fmt.Errorf("other users may change this file (mode %04o): chmod 600 '%s'", mode.Perm(), path)
	case secrets && mode.Perm()&0o004 != 0:
		return fmt.Errorf("every user may read the secrets in this file (mode %04o): chmod 600 '%s'", mode.Perm(), path)
	}
	return nil
}

// OnServer reports whether a database's address is PostgreSQL's.
func OnServer(address string) bool {
	scheme, _, ok := strings.Cut(address, "://")
	return ok && (scheme == "postgres" || scheme == "postgresql")
}

// Database accepts "", the absolute path of a file, and the address of a PostgreSQL
// database; prefix is that of the settings.
func Database(address, prefix string) error {
	switch scheme, _, ok := strings.Cut(address, "://"); {
	case OnServer(address):
		return server(address, prefix)
	case address == "":
		return nil
	case strings.Contains(address, "password=") || strings.Contains(address, "postgres:") || strings.Contains(address, "postgresql:"):
		return errors.New("this is no path of a file: write the address of a PostgreSQL database as postgres://user@host/name, without a password")
	case ok:
		return fmt.Errorf("%s:// is not supported: give the path of a file, or postgres://user@host/name", scheme)
	}
	return Path(address)
}

// server checks the address of a PostgreSQL database. The address is shown in the panel,
// in logs and in errors, so that it has no password. No error quotes it.
func server(address, prefix string) error {
	u, err := url.Parse(address)
	if err != nil {
		return errors.New("the address is not a URL: write postgres://user@host:5432/name, with %20 and the like for special characters")
	}
	q, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return errors.New("the address has parameters that are not valid: write %25 for %, %3B for ; and %26 for &")
	}
	_, password := u.User.Password()
	switch {
	case strings.Contains(q.Get("search_path"), ","):
		return errors.New("search_path must name one schema")
	case password || q.Has("password") || q.Has("sslpassword"):
		return fmt.Errorf("the address has a password, and addresses are shown: take it out and set %[1]s_DATABASE_PASSWORD, or %[1]s_DATABASE_PASSWORD_FILE to a file with it", prefix)
	case u.User.Username() == "" && q.Get("user") == "":
		return errors.New("the address names no user: write postgres://user@host/name")
	}
	return nil
}
