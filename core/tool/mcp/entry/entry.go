// Package entry reads .mcp.json, in which a vault's owner lists MCP servers: the
// format of Claude Code, and next to it "trust". Mistakes are reported with their
// lines, and cost only the server that they are about.
package entry

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
	MaxFile    = 256 << 10 // bytes
	MaxTimeout = 10 * time.Minute
	maxName    = 64 // bytes of a server's name
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

// A Server is one entry of the file, its variables replaced. It is not changed.
type Server struct {
	Name      string // as the file has it
	Short     string // as its tools have it; unique
	Line      int    // of its entry in the file
	Transport string // Stdio or HTTP
	Command   string
	Args      []string
	Env       map[string]string
	URL       string
	Headers   map[string]string
	Trust     core.Trust    // the lowest that may use it; full without a mark
	Timeout   time.Duration // of one call; 0: not set

	secrets []string // values that no log and no error shows
}

// Same reports whether b is spoken to and offered as a is.
func (a *Server) Same(b *Server) bool {
	x, y := *a, *b
	x.Line, y.Line = 0, 0
	return reflect.DeepEqual(x, y)
}

// A member is one of a JSON object, and where it is.
type member struct {
	name  string
	value json.RawMessage
	at    int // offset behind the name, from the beginning of the file
}

// members returns those of the object in text, which begins at offset from in the
// file, in order. At most limit are taken.
func members(text []byte, from, limit int) ([]member, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	if t, err := d.Token(); err != nil {
		return nil, err
	} else if t != json.Delim('{') {
		return nil, errors.New("an object is needed here: {…}")
	}
	var list []member
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return list, err
		}
		e := member{at: from + int(d.InputOffset())}
		e.name, _ = t.(string)
		if err := d.Decode(&e.value); err != nil {
			return list, err
		}
		if slices.ContainsFunc(list, func(x member) bool { return x.name == e.name }) {
			return list, fmt.Errorf("%q is set twice", core.CutRunes(e.name, maxName))
		}
		if list = append(list, e); len(list) > limit {
			return list[:limit], fmt.Errorf("more than %d entries", limit)
		}
	}
	return list, nil
}

// valueAt returns where the value of e begins in the file.
func (e member) valueAt(text []byte) int {
	if i := bytes.IndexFunc(text[e.at:], func(r rune) bool { return !strings.ContainsRune(" \t\r\n:", r) }); i >= 0 {
		return e.at + i
	}
	return e.at
}

func lineOf(text []byte, at int) int {
	return 1 + bytes.Count(text[:min(max(at, 0), len(text))], []byte("\n"))
}

// Parse reads the file. names are the variables that it may use, environ the
// gateway's environment, KEY=VALUE. A file that is no JSON has one mistake
// without a server's name, and its servers are not known.
func Parse(text []byte, names, environ []string) ([]*Server, []Mistake) {
	vars := newVariables(names, environ)
	if len(text) > MaxFile {
		return nil, []Mistake{{Line: 1, Text: fmt.Sprintf("the file is larger than %d KiB", MaxFile>>10)}}
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
	i := slices.IndexFunc(top, func(e member) bool { return e.name == "mcpServers" })
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
	var servers []*Server
	for _, e := range list {
		s, m := vars.server(text, e)
		if m != nil {
			mistakes = append(mistakes, *m)
			continue
		}
		s.Short = unique(shorten(s.Name, maxShort), maxShort, func(n string) bool {
			return slices.ContainsFunc(servers, func(x *Server) bool { return x.Short == n })
		})
		servers = append(servers, s)
	}
	return servers, mistakes
}

// server reads one entry of mcpServers.
func (v variables) server(text []byte, e member) (*Server, *Mistake) {
	name := core.CleanName(core.CutRunes(e.name, maxName))
	wrong := func(at int, format string, args ...any) (*Server, *Mistake) {
		return nil, &Mistake{Server: name, Line: lineOf(text, at), Text: fmt.Sprintf(format, args...)}
	}
	if e.name == "" || name != e.name {
		return wrong(e.at, "a server's name is of 1 to %d printable characters", maxName)
	}
	fields, err := members(e.value, e.valueAt(text), 32)
	if err != nil {
		return wrong(e.at, "%v", err)
	}
	s := &Server{Name: name, Line: lineOf(text, e.at), Trust: core.Full}
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
func (v variables) field(s *Server, f member) (err error) {
	texts := func(to any, what string) error {
		if json.Unmarshal(f.value, to) != nil {
			return fmt.Errorf("%s must be %s", f.name, what)
		}
		return nil
	}
	switch f.name {
	case "type":
		err = texts(&s.Transport, "a text")
	case "command":
		if err = texts(&s.Command, "a text"); err == nil {
			s.Command, err = v.replace(s, s.Command)
		}
	case "args":
		if err = texts(&s.Args, "a list of texts"); err == nil {
			err = v.each(s, s.Args)
		}
	case "env":
		if err = texts(&s.Env, "an object of texts"); err == nil {
			err = v.values(s, s.Env)
		}
	case "url":
		if err = texts(&s.URL, "a text"); err == nil {
			s.URL, err = v.replace(s, s.URL)
		}
	case "headers":
		if err = texts(&s.Headers, "an object of texts"); err == nil {
			err = v.values(s, s.Headers)
		}
	case "trust":
		var level string
		if err = texts(&level, "a text"); err == nil {
			s.Trust, err = core.ParseTrust(level)
		}
	case "timeout":
		var ms int
		err = texts(&ms, "a whole number of milliseconds")
		if s.Timeout = time.Duration(ms) * time.Millisecond; err == nil && (s.Timeout < time.Second || s.Timeout > MaxTimeout) {
			err = fmt.Errorf("timeout is in milliseconds, from 1000 to %d", MaxTimeout.Milliseconds())
		}
	default:
		err = fmt.Errorf("%q is not known here: type, command, args, env, url, headers, trust and timeout are", core.CutRunes(f.name, maxName))
	}
	return err
}

// check completes an entry and reports what does not fit together.
func (s *Server) check() error {
	if s.Transport == "" && s.URL == "" {
		s.Transport = Stdio
	}
	if s.Transport == "" || s.Transport == "streamable-http" {
		s.Transport = HTTP
	}
	switch {
	case s.Transport == "sse":
		return errors.New(`type "sse" was replaced by "http" in the protocol and is not spoken`)
	case s.Transport != Stdio && s.Transport != HTTP:
		return fmt.Errorf(`type is "stdio" or "http", not %q`, core.CutRunes(s.Transport, maxName))
	case s.Transport == Stdio && strings.TrimSpace(s.Command) == "":
		return errors.New("command is missing")
	case s.Transport == Stdio && (s.URL != "" || s.Headers != nil):
		return errors.New("url and headers belong to servers of type http")
	case s.Transport == HTTP && (s.Command != "" || s.Args != nil || s.Env != nil):
		return errors.New("command, args and env belong to servers of type stdio")
	case s.Transport == HTTP:
		return s.checkURL()
	}
	for name, value := range s.Env {
		if !variable.MatchString(name) || strings.ContainsRune(value, 0) {
			return fmt.Errorf("env: %q is not a name of a variable, or its value holds a NUL character", core.CutRunes(name, maxName))
		}
	}
	if strings.ContainsRune(s.Command+strings.Join(s.Args, ""), 0) {
		return errors.New("command or args hold a NUL character")
	}
	return nil
}

func (s *Server) checkURL() error {
	u, err := url.Parse(s.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return errors.New("url must be http://host/path or https://host/path")
	}
	if u.User != nil {
		return errors.New("url must hold no password: give it in headers")
	}
	for name, value := range s.Headers {
		if !headerName().MatchString(name) || strings.ContainsAny(value, "\r\n\x00") {
			return fmt.Errorf("headers: %q is not a header's name, or its value is not of one line", core.CutRunes(name, maxName))
		}
	}
	return nil
}
