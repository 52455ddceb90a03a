package migrating

import (
	"io"
	"net/url"
	"os"
	"strings"

	"gatehouse/core"
	"gatehouse/core/store/carry/remote"
)

// maxPassword is the largest file of a password, in bytes.
const maxPassword = 4096

// A server is a PostgreSQL database. No error and no output quotes its password.
type server struct {
	remote.Database
	url *url.URL
}

// newServer returns the database at the address, with the password in passwordFile unless
// that is "".
func newServer(address, passwordFile string) (*server, error) {
	u, err := url.Parse(address)
	if err == nil {
		_, err = url.ParseQuery(u.RawQuery) // shown would leave parts in
	}
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" {
		return nil, core.Errorf(core.Invalid, "the address of the PostgreSQL database must be a URL: postgres://user@host:5432/name, with %%20 and the like for special characters")
	}
	s := &server{remote.Database{Address: address}, u}
	if passwordFile == "" {
		return s, nil
	}
	password, err := readPassword(passwordFile)
	if err != nil {
		return nil, err
	}
	s.Password = password
	return s, nil
}

func readPassword(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxPassword))
	if err != nil {
		return "", err
	}
	password := strings.TrimRight(string(text), "\r\n")
	if password == "" || strings.ContainsAny(password, "\r\n\x00") {
		return "", core.Errorf(core.Invalid, "%s must have the password in one line", file)
	}
	return password, nil
}

// shown returns the address without passwords.
func (s *server) shown() string {
	u := *s.url
	if u.User != nil {
		u.User = url.User(u.User.Username())
	}
	if q := u.Query(); q.Has("password") || q.Has("sslpassword") {
		q.Del("password")
		q.Del("sslpassword")
		u.RawQuery = q.Encode()
	}
	return u.String()
}
