package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"

	"gatehouse/core"
)

// File is the name of the file, in the vault, that lists the servers.
const File = ".mcp.json"

// Bounds of the file.
const (
	MaxServers = 32
	maxFile    = 256 << 10 // bytes
	maxName    = 64        // bytes of a server's name
)

// Transports.
const (
	Stdio = "stdio" // a program that is spoken to by its standard streams
	HTTP  = "http"  // a streamable HTTP endpoint
)

// A Mistake is what is wrong in the file. The server that it is about is left
// out; the others work.
type Mistake struct {
	Server string // "" where the file as a whole cannot be read
	Line   int    // from 1
	Text   string
}

func (m Mistake) String() string {
	if m.Server == "" {
		return fmt.Sprintf("%s:%d: %s", File, m.Line, m.Text)
	}
	return fmt.Sprintf("%s:%d: %s: %s", File, m.Line, m.Server, m.Text)
}

// A server is one entry of the file, its variables replaced.
type server struct {
	name      string // as the file has it
	short     string // as tools have it; unique
	line      int
	transport string
	command   string
	args      []string
	env       map[string]string
	url       string
	headers   map[string]string
	trust     core.Trust // the lowest that may use it; full without a mark
	timeout   time.Duration
	secrets   []string // values that no log and no error shows
}

// same reports whether b is spoken to and offered as a is.
func (a *server) same(b *server) bool {
	x, y := *a, *b
	x.line, y.line = 0, 0
	return reflect.DeepEqual(x, y)
}

// An entry is a member of a JSON object, and where it stands.
type entry struct {
	name  string
	value json.RawMessage
	at    int // offset behind the name, from the beginning of the file
}

// members are those of the object in text, which begins at offset from in the
// file, in order. At most limit are taken.
func members(text []byte, from, limit int) ([]entry, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	if t, err := d.Token(); err != nil {
		return nil, err
	} else if t != json.Delim('{') {
		return nil, errors.New("an object is needed here: {…}")
	}
	var list []entry
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return list, err
		}
		e := entry{at: from + int(d.InputOffset())}
		e.name, _ = t.(string)
		if err := d.Decode(&e.value); err != nil {
			return list, err
		}
		if slices.ContainsFunc(list, func(x entry) bool { return x.name == e.name }) {
			return list, fmt.Errorf("%q stands there twice", core.CutRunes(e.name, maxName))
		}
		if list = append(list, e); len(list) > limit {
			return list[:limit], fmt.Errorf("more than %d entries", limit)
		}
	}
	return list, nil
}

// valueAt is where the value of e begins in the file.
func (e entry) valueAt(text []byte) int {
	if i := bytes.IndexFunc(text[e.at:], func(r rune) bool { return !strings.ContainsRune(" \t\r\n:", r) }); i >= 0 {
		return e.at + i
	}
	return e.at
}

func lineOf(text []byte, at int) int {
	return 1 + bytes.Count(text[:min(max(at, 0), len(text))], []byte("\n"))
}

// parse reads the file. A file that is no JSON has one mistake without a
// server's name, and its servers are not known.
func parse(text []byte, vars variables) ([]*server, []Mistake) {
	if len(text) > maxFile {
		return nil, []Mistake{{Line: 1, Text: fmt.Sprintf("the file is larger than %d KiB", maxFile>>10)}}
	}
	var whole any
	if err := json.Unmarshal(text, &whole); err != nil {
		at := 0
		if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
			at = int(syntax.Offset)
		}
		return nil, []Mistake{{Line: lineOf(text, at), Text: "this is not JSON: " + err.Error()}}
	}
	top, err := members(text, 0, 1000)
	if err != nil {
		return nil, []Mistake{{Line: 1, Text: err.Error()}}
	}
	i := slices.IndexFunc(top, func(e entry) bool { return e.name == "mcpServers" })
	if i < 0 {
		if len(top) == 0 {
			return nil, nil
		}
		return nil, []Mistake{{Line: 1, Text: `"mcpServers" is missing`}}
	}
	at := top[i].valueAt(text)
	list, err := members(top[i].value, at, MaxServers)
	var mistakes []Mistake
	if err != nil {
		mistakes = append(mistakes, Mistake{Line: lineOf(text, at), Text: "mcpServers: " + err.Error()})
	}
	var servers []*server
	for _, e := range list {
		s, m := vars.server(text, e)
		if m != nil {
			mistakes = append(mistakes, *m)
			continue
		}
		s.short = unique(shorten(s.name, maxShort), maxShort, func(n string) bool {
			return slices.ContainsFunc(servers, func(x *server) bool { return x.short == n })
		})
		servers = append(servers, s)
	}
	return servers, mistakes
}

// server reads one entry of mcpServers.
func (v variables) server(text []byte, e entry) (*server, *Mistake) {
	name := core.CleanName(core.CutRunes(e.name, maxName))
	wrong := func(at int, format string, args ...any) (*server, *Mistake) {
		return nil, &Mistake{Server: name, Line: lineOf(text, at), Text: fmt.Sprintf(format, args...)}
	}
	if e.name == "" || name != e.name {
		return wrong(e.at, "a server's name is of 1 to %d printable characters", maxName)
	}
	fields, err := members(e.value, e.valueAt(text), 32)
	if err != nil {
		return wrong(e.at, "%v", err)
	}
	s := &server{name: name, line: lineOf(text, e.at), trust: core.Full}
	for _, f := range fields {
		if err := v.field(s, f); err != nil {
			return wrong(f.at, "%v", err)
		}
	}
	if err := s.check(); err != nil {
		return wrong(e.at, "%v", err)
	}
	return s, nil
}

// field takes one member of a server's entry.
func (v variables) field(s *server, f entry) (err error) {
	texts := func(to any, what string) error {
		if json.Unmarshal(f.value, to) != nil {
			return fmt.Errorf("%s must be %s", f.name, what)
		}
		return nil
	}
	switch f.name {
	case "type":
		err = texts(&s.transport, "a text")
	case "command":
		if err = texts(&s.command, "a text"); err == nil {
			s.command, err = v.replace(s, s.command)
		}
	case "args":
		if err = texts(&s.args, "a list of texts"); err == nil {
			err = v.each(s, s.args)
		}
	case "env":
		if err = texts(&s.env, "an object of texts"); err == nil {
			err = v.values(s, s.env)
		}
	case "url":
		if err = texts(&s.url, "a text"); err == nil {
			s.url, err = v.replace(s, s.url)
		}
	case "headers":
		if err = texts(&s.headers, "an object of texts"); err == nil {
			err = v.values(s, s.headers)
		}
	case "trust":
		var level string
		if err = texts(&level, "a text"); err == nil {
			s.trust, err = core.ParseTrust(level)
		}
	case "timeout":
		var ms int
		err = texts(&ms, "a whole number of milliseconds")
		if s.timeout = time.Duration(ms) * time.Millisecond; err == nil && (s.timeout < time.Second || s.timeout > MaxTimeout) {
			err = fmt.Errorf("timeout is in milliseconds, from 1000 to %d", MaxTimeout.Milliseconds())
		}
	default:
		err = fmt.Errorf("%q is not known here: type, command, args, env, url, headers, trust and timeout are", core.CutRunes(f.name, maxName))
	}
	return err
}

// check completes an entry and says what does not fit together.
func (s *server) check() error {
	if s.transport == "" && s.url == "" {
		s.transport = Stdio
	}
	if s.transport == "" || s.transport == "streamable-http" {
		s.transport = HTTP
	}
	switch {
	case s.transport == "sse":
		return errors.New(`type "sse" was replaced by "http" in the protocol and is not spoken`)
	case s.transport != Stdio && s.transport != HTTP:
		return fmt.Errorf(`type is "stdio" or "http", not %q`, core.CutRunes(s.transport, maxName))
	case s.transport == Stdio && strings.TrimSpace(s.command) == "":
		return errors.New("command is missing")
	case s.transport == Stdio && (s.url != "" || s.headers != nil):
		return errors.New("url and headers belong to servers of type http")
	case s.transport == HTTP && (s.command != "" || s.args != nil || s.env != nil):
		return errors.New("command, args and env belong to servers of type stdio")
	case s.transport == HTTP:
		return s.checkURL()
	}
	for name, value := range s.env {
		if !variable.MatchString(name) || strings.ContainsRune(value, 0) {
			return fmt.Errorf("env: %q is not a name of a variable, or its value holds a NUL character", core.CutRunes(name, maxName))
		}
	}
	if strings.ContainsRune(s.command+strings.Join(s.args, ""), 0) {
		return errors.New("command or args hold a NUL character")
	}
	return nil
}

func (s *server) checkURL() error {
	u, err := url.Parse(s.url)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return errors.New("url must be http://host/path or https://host/path")
	}
	if u.User != nil {
		return errors.New("url must hold no password: give it in headers")
	}
	for name, value := range s.headers {
		if !headerName.MatchString(name) || strings.ContainsAny(value, "\r\n\x00") {
			return fmt.Errorf("headers: %q is not a header's name, or its value is not of one line", core.CutRunes(name, maxName))
		}
	}
	return nil
}
