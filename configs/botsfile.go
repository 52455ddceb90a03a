package configs

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"gatehouse/configs/check"
	"gatehouse/configs/values"
)

const (
	maxBotsFile = 256 << 10 // bytes
	maxAllowed  = 1000      // user ids of one bot
)

// botFields are what an entry may hold, each with an example.
var botFields = [][2]string{
	{"name", "name: support"}, {"platform", "platform: telegram"},
	{"token_file", "token_file: /run/secrets/support_token"}, {"token", "token_file: /run/secrets/support_token"},
	{"api_url", "api_url: https://api.telegram.org"},
	{"dm_policy", "dm_policy: pairing"}, {"allowed_users", "allowed_users: [12345678]"},
	{"dm_trust", "dm_trust: sandboxed"}, {"group_trust", "group_trust: sandboxed"},
}

func botFieldNames() (names []string) {
	for _, f := range botFields {
		names = append(names, f[0])
	}
	return names
}

func botExample(field string) string {
	for _, f := range botFields {
		if f[0] == field {
			return f[1]
		}
	}
	return ""
}

// reserved are names that mean something else: turns that come over HTTP or from the
// schedule, and names in addresses of the API, on the command line and in metrics. A platform's name is that of its bot of the
// settings; without one, a bot of that platform may have it.
var reserved = []string{"api", "schedule", "all", "off", "other", "pairing", "access", "status"}

var botName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z][a-z0-9_-]{0,31}$`) })

// A botsReader reads BOTS_FILE. It finds everything that is wrong, and repeats
// no value: any of them might be a token in the wrong place.
type botsReader struct {
	c        *Config
	path     string
	problems Problems
	secrets  bool           // a token is in the file itself
	names    map[string]int // name → line; bounded by MaxBots
}

// readBotsFile returns the bots of BOTS_FILE. Without a default file there are none.
func (c *Config) readBotsFile() ([]Bot, Problems) {
	path, named := c.BotsPath()
	if path == "" {
		return nil, nil
	}
	r := &botsReader{c: c, path: path, names: map[string]int{}}
	text, mode, err := values.ReadBounded(path, maxBotsFile)
	if errors.Is(err, fs.ErrNotExist) && !named {
		return nil, nil
	}
	if err != nil {
		return nil, Problems{{Name: Prefix + "_BOTS_FILE", Fault: err.Error(), Example: Prefix + "_BOTS_FILE=/etc/gatehouse/bots.yaml"}}
	}
	var bots []Bot
	if o := c.OriginalBots(); o != nil { // the start makes a private file of it
		bots = c.originalBots(o)
	} else {
		bots = r.file(text)
	}
	if err := check.Private(path, mode, r.secrets); err != nil {
		r.problems = append(r.problems, Problem{Name: path, Fault: err.Error()})
	}
	return bots, r.problems
}

func (r *botsReader) bad(at *token.Token, fault, example string) {
	where := r.path
	if at != nil && at.Position != nil {
		where = r.where(at)
	}
	r.problems = append(r.problems, Problem{Name: where, Fault: fault, Example: example})
}

func (r *botsReader) where(at *token.Token) string {
	return fmt.Sprintf("%s:%d", r.path, at.Position.Line)
}

func (r *botsReader) file(text []byte) (bots []Bot) {
	doc, err := parser.ParseBytes(text, 0)
	if err != nil {
		r.syntax(err)
		return nil
	}
	var bodies []ast.Node
	for _, d := range doc.Docs {
		if d.Body != nil && d.Body.Type() != ast.NullType {
			bodies = append(bodies, d.Body)
		}
	}
	if len(bodies) == 0 {
		return nil
	}
	top, ok := fieldsOf(bodies[0])
	if len(bodies) > 1 || !ok {
		r.bad(bodies[len(bodies)-1].GetToken(), "this file is one list under the word bots", "bots: [{name: support, platform: telegram, token_file: /run/secrets/support_token}]")
		return nil
	}
	for _, f := range top {
		if keyOf(f) != "bots" {
			r.bad(f.Key.GetToken(), "the only word at the top is bots", "bots:")
			continue
		}
		bots = append(bots, r.list(f.Value)...)
	}
	return bots
}

// quotedText is what a parser's message might repeat of the file.
var quotedText = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile("[\"'`].*[\"'`]") })

// syntax reports where the file stops being YAML.
func (r *botsReader) syntax(err error) {
	var at *token.Token
	fault := "this is not YAML"
	var e yaml.Error
	if errors.As(err, &e) {
		at = e.GetToken()
		fault += ": " + quotedText().ReplaceAllString(e.GetMessage(), "…")
	}
	r.bad(at, fault, "")
}

// fieldsOf returns the pairs of a mapping.
func fieldsOf(n ast.Node) ([]*ast.MappingValueNode, bool) {
	switch n := n.(type) {
	case *ast.MappingNode:
		return n.Values, true
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{n}, true
	}
	return nil, false
}

func keyOf(f *ast.MappingValueNode) string {
	if s, ok := f.Key.(*ast.StringNode); ok {
		return s.Value
	}
	return ""
}

// scalar returns a plain value as it is written; null counts as not set.
func scalar(n ast.Node) (string, bool) {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.IntegerNode:
		return n.Token.Value, true
	case *ast.NullNode:
		return "", true
	}
	return "", false
}

func (r *botsReader) list(n ast.Node) (bots []Bot) {
	if n.Type() == ast.NullType {
		return nil
	}
	seq, ok := n.(*ast.SequenceNode)
	if !ok {
		r.bad(n.GetToken(), "bots is a list: each bot begins with a dash", "- name: support")
		return nil
	}
	if most := MaxBots - len(platforms()); len(seq.Values) > most { // each platform has one bot of the settings
		r.bad(n.GetToken(), fmt.Sprintf("%d bots are listed, at most %d are possible", len(seq.Values), most), "")
		return nil
	}
	for _, v := range seq.Values {
		fields, ok := fieldsOf(v)
		if !ok {
			r.bad(v.GetToken(), "a bot has fields, at least name, platform and token_file", "- name: support")
			continue
		}
		bots = append(bots, r.bot(v, fields))
	}
	return bots
}

// bot reads one entry. What it finds wrong is in problems.
func (r *botsReader) bot(n ast.Node, fields []*ast.MappingValueNode) Bot {
	first := n.GetToken()
	if len(fields) > 0 {
		first = fields[0].Key.GetToken()
	}
	e := &entry{r: r, at: map[string]*token.Token{}, Bot: Bot{
		InFile: true, Where: r.where(first), DMPolicy: "pairing", DMTrust: r.c.DMTrust, GroupTrust: r.c.GroupTrust,
	}}
	for _, f := range fields {
		e.field(f)
	}
	e.finish(first)
	return e.Bot
}

// An entry is a bot that is being read.
type entry struct {
	Bot
	r  *botsReader
	at map[string]*token.Token // fields that were read, by name
}

func (e *entry) bad(field, fault string) { e.r.bad(e.at[field], fault, botExample(field)) }

var plainWord = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z_]{1,24}$`) })

func (e *entry) field(f *ast.MappingValueNode) {
	key := keyOf(f)
	if !slices.Contains(botFieldNames(), key) {
		fault := "this field is not known"
		if near := check.Nearest(key, botFieldNames()); plainWord().MatchString(key) {
			fault = fmt.Sprintf("the field %s is not known; did you mean %s?", key, near)
		}
		e.r.bad(f.Key.GetToken(), fault, "")
		return
	}
	e.at[key] = f.Key.GetToken()
	if key == "allowed_users" {
		e.users(f.Value)
		return
	}
	v, ok := scalar(f.Value)
	switch {
	case !ok:
		e.bad(key, key+" wants one plain value")
	case v != "":
		e.take(key, v)
	default:
		delete(e.at, key)
	}
}

func (e *entry) take(key, v string) {
	choose := func(to *string, choices string) {
		if list := strings.Split(choices, ","); !slices.Contains(list, v) {
			e.bad(key, key+" is one of "+strings.Join(list, ", "))
			return
		}
		*to = v
	}
	switch key {
	case "name":
		e.name(v)
	case "platform":
		choose(&e.Platform, strings.Join(platformNames(), ","))
	case "token":
		e.Token, e.r.secrets = values.NewSecret(v), true
	case "token_file":
		e.TokenFile = relativeTo(e.r.path, v)
	case "api_url":
		if e.APIURL = strings.TrimRight(v, "/"); check.Origin(e.APIURL) != nil {
			e.bad(key, "api_url is scheme://host:port with http or https, without a path")
		}
	case "dm_policy":
		choose(&e.DMPolicy, "pairing,allowlist,open,disabled")
	case "dm_trust":
		choose(&e.DMTrust, "sandboxed,vault")
	case "group_trust":
		choose(&e.GroupTrust, "sandboxed,vault")
	}
}

// relativeTo returns a path that may be relative to the file that names it.
func relativeTo(file, path string) string {
	if filepath.IsAbs(path) || strings.HasPrefix(path, "~") {
		return absolute(path)
	}
	return filepath.Join(filepath.Dir(file), path)
}

func (e *entry) name(v string) {
	e.Name = v
	line, taken := e.r.names[v]
	switch {
	case !botName().MatchString(v):
		e.bad("name", "a name is 1 to 32 small letters, digits, - and _, and begins with a letter")
	case slices.Contains(reserved, v):
		e.bad("name", v+" is the name of something else: choose another")
	case taken:
		e.bad("name", fmt.Sprintf("the bot of line %d has that name already", line))
	default:
		e.r.names[v] = e.at["name"].Position.Line
	}
}

func (e *entry) users(n ast.Node) {
	if n.Type() == ast.NullType {
		return
	}
	seq, ok := n.(*ast.SequenceNode)
	if !ok || len(seq.Values) > maxAllowed {
		e.bad("allowed_users", fmt.Sprintf("allowed_users is a list of at most %d user ids", maxAllowed))
		return
	}
	for _, v := range seq.Values {
		id, ok := scalar(v)
		if !ok || check.User(id) != nil {
			e.r.bad(v.GetToken(), "this is not a numeric user id; names can change hands, so they are not accepted", botExample("allowed_users"))
			continue
		}
		e.AllowedUsers = append(e.AllowedUsers, id)
	}
}

// finish checks the entry as a whole.
func (e *entry) finish(first *token.Token) {
	if p, ok := platformNamed(e.Name); ok && e.Name != e.Platform {
		e.bad("name", e.Name+" is the name of something else: choose another")
	} else if ok && e.r.c.hasSetting(e.Name) {
		e.bad("name", "a bot of this name is configured by "+Prefix+"_"+p.setting+": remove one of them, or choose another name")
	}
	for _, field := range []string{"name", "platform"} {
		if e.at[field] == nil {
			e.r.bad(first, "this bot has no "+field, botExample(field))
		}
	}
	switch p, ok := platformNamed(e.Platform); {
	case e.at["token"] != nil && e.at["token_file"] != nil:
		e.bad("token", "token and token_file are both given: keep one of them")
	case e.at["token"] == nil && e.at["token_file"] == nil:
		e.r.bad(first, "this bot has no token_file", botExample("token_file"))
	case ok && e.Token.IsSet():
		if err := p.token(e.Token.Reveal()); err != nil {
			e.bad("token", "the token "+err.Error())
		}
	case ok && check.Path(e.TokenFile) != nil:
		e.bad("token_file", "token_file names an unknown home directory: give the whole path")
	default:
		e.refresh()
	}
	if p, ok := platformNamed(e.Platform); ok && e.APIURL == "" {
		e.APIURL = p.bot(e.r.c).APIURL
	}
}
