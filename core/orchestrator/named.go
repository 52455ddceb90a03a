package orchestrator

import (
	"context"
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"

	"gatehouse/core"
	"gatehouse/core/tool"
)

// Bounds of what is searched for an address that a model wants to fetch.
const (
	maxNamedBytes = 4 << 20 // of the transcript, its newest
	maxFoundBytes = 1 << 20 // of results of this run that are kept for it
)

// named reports whether u was named in the conversation: its host by the turn's sender;
// or u itself by the result of an earlier fetch or search. A page names addresses, never
// hosts: otherwise it could make the model send data to a host of its choice.
func (r *run) named(ctx context.Context, u *url.URL) (bool, error) {
	host, err := tool.Host(u)
	if err != nil {
		return false, nil
	}
	for i := range r.t.Rows {
		if row := &r.t.Rows[i]; (row.Quote == nil || !row.Quote.Forwarded) && wordsName(row.Text, host) {
			return true, nil
		}
	}
	for _, s := range r.t.options().Before {
		if s.Role == "user" && wordsName(s.Text, host) {
			return true, nil
		}
	}
	r.mu.Lock()
	found := slices.Clone(r.found)
	r.mu.Unlock()
	if slices.ContainsFunc(found, func(f result) bool { return f.names(u, host) }) {
		return true, nil
	}
	return r.namedBefore(ctx, u, host)
}

// namedBefore returns named for what is in the transcript.
func (r *run) namedBefore(ctx context.Context, u *url.URL, host string) (bool, error) {
	if r.o.o.Runs == nil {
		return false, nil
	}
	runs, err := r.o.o.Runs(ctx, r.t.Session.ID)
	if err != nil {
		return false, err
	}
	messages, err := r.conv.Newest(maxNamedBytes)
	if err != nil {
		return false, err
	}
	asked := map[string]*core.Block{} // calls of tools, by id
	for i := range messages {
		m := &messages[i]
		user, ours := runs[m.Run]
		if !ours || m.Summary {
			continue // not of this gateway's runs: anyone may have written it
		}
		for k := range m.Blocks {
			b := &m.Blocks[k]
			switch call := asked[b.ToolUseID]; {
			case b.Type == "tool_use":
				asked[b.ID] = b
			case b.Type == "tool_result" && call != nil && !b.IsError && result{call.Name, call.Input, b.Text}.names(u, host),
				m.Role == "user" && b.Type == "text" && user == r.t.User && user > 0 && wordsName(own(b.Text), host):
				return true, nil
			}
		}
	}
	return false, nil
}

// A result is what a tool returned, with the call that asked for it.
type result struct {
	tool  string
	input json.RawMessage
	text  string
}

// names reports whether an answer from the web holds the address u, which must
// not be an echo of what the model sent there.
func (f result) names(u *url.URL, host string) bool {
	text := f.text
	switch f.tool {
	case "WebFetch":
	case "WebSearch":
		text = unquoted(text) // text of the provider's model is not a page that it found
	default:
		return false
	}
	return namesAddress(text, u, host) && !sent(f.input, host)
}

// sent reports whether a call's input names host, also in the escapes of an
// address.
func sent(input json.RawMessage, host string) bool {
	var fields map[string]any
	if json.Unmarshal(input, &fields) != nil {
		return true
	}
	delete(fields, "allowed_domains") // these are filters
	delete(fields, "blocked_domains")
	for name, v := range fields {
		s, ok := v.(string)
		if u, err := url.Parse(s); ok && name == "url" && err == nil {
			if at, err := tool.Host(u); err == nil && at == host {
				return false // a page of the host itself
			}
		}
		for range 3 {
			if ok && namesHost(s, host) {
				return true
			}
			plain, err := url.QueryUnescape(s)
			if err != nil {
				break
			}
			s = plain
		}
	}
	return false
}

// unquoted returns the lines of text that are no quotation.
func unquoted(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, ">") {
			b.WriteString(line)
		}
	}
	return b.String()
}

// keepFound keeps the result of a fetch or a search for the addresses in it:
// the conversation of a sub-turn is in no transcript.
func (r *run) keepFound(b *core.Block, res *tool.Result) {
	if b.Name != "WebFetch" && b.Name != "WebSearch" || res.IsError {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.found = append(r.found, result{b.Name, b.Input, res.Text})
	size := 0
	for i := len(r.found) - 1; i >= 0; i-- {
		if size += len(r.found[i].text); size > maxFoundBytes {
			r.found = slices.Clone(r.found[i+1:])
			return
		}
	}
}

// quotedFrom is the line above a quotation: see agent.Quoted.
var quotedFrom = regexp.MustCompile(`^From "[^"]*" \(([a-z ]+)\):$`)

// own returns the lines of a message in a transcript that its sender wrote: neither
// files that came with it nor quotations. In a group the sender's text is a quotation
// too, marked with its trust.
func own(text string) string {
	if strings.HasPrefix(text, "Attached file ") || strings.HasPrefix(text, "[") || strings.HasPrefix(text, "Given with this conversation") {
		return ""
	}
	var b strings.Builder
	label := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if m := quotedFrom.FindStringSubmatch(line); m != nil {
			label = m[1]
			continue
		}
		words, quoted := strings.CutPrefix(line, "> ")
		if quoted {
			if _, err := core.ParseTrust(label); err != nil {
				continue
			}
		} else {
			label = ""
		}
		b.WriteString(words + "\n")
	}
	return b.String()
}

// likeFiles are top-level domains that users know as the ends of file names.
var likeFiles = []string{"cc", "md", "mov", "pm", "py", "rs", "sh", "zip"}

// wordsName reports whether a user's text names host. A host without a dot, or one that
// looks like a file name, must be written as an address: anyone may own readme.md.
func wordsName(text, host string) bool {
	dot := strings.LastIndexByte(host, '.')
	if strings.Contains(host, ":") || dot >= 0 && !slices.Contains(likeFiles, host[dot+1:]) {
		return namesHost(text, host)
	}
	for _, at := range strings.Split(text, "://")[1:] {
		if len(at) >= len(host) && strings.EqualFold(at[:len(host)], host) && !goesOn(at[len(host):]) {
			return true
		}
	}
	return false
}

// namesHost reports whether host is in text as a whole host name, in its
// ASCII form or as users write it, and not as the domain of an e-mail address.
func namesHost(text, host string) bool {
	if text == "" {
		return false
	}
	low := strings.ToLower(text)
	forms := []string{host}
	if wide, err := idna.Display.ToUnicode(host); err == nil && wide != host {
		forms = append(forms, strings.ToLower(wide))
	}
	for _, form := range forms {
		for from := 0; ; {
			i := strings.Index(low[from:], form)
			if i < 0 {
				break
			}
			begin, end := from+i, from+i+len(form)
			if before, _ := utf8.DecodeLastRuneInString(low[:begin]); begin == 0 || !ofHost(before) && before != '.' && before != '@' {
				if !goesOn(low[end:]) {
					return true
				}
			}
			from = begin + 1
		}
	}
	return false
}

// ofHost reports whether a character can be part of a host's label.
func ofHost(c rune) bool {
	return c == '-' || c == '_' || unicode.IsLetter(c) || unicode.IsDigit(c) || unicode.IsMark(c)
}

// goesOn reports whether a host name goes on in rest, or turns out to be the
// user's part of an address.
func goesOn(rest string) bool {
	c, size := utf8.DecodeRuneInString(rest)
	switch {
	case rest == "":
		return false
	case ofHost(c), c == '@':
		return true
	case c == '.' || c == '\u3002' || c == '\uff0e' || c == '\uff61': // dots of host names
		next, _ := utf8.DecodeRuneInString(rest[size:])
		return len(rest) > size && ofHost(next)
	}
	return false
}

// namesAddress reports whether text contains the address u, or one that begins with it:
// a parent directory or the host's first page reveal nothing that the text did not. The
// scheme does not matter.
func namesAddress(text string, u *url.URL, host string) bool {
	if !strings.Contains(text, "://") {
		return false
	}
	if p := u.Port(); p != "" {
		host += ":" + p
	}
	rest := strings.TrimSuffix(u.EscapedPath(), "/")
	if u.RawQuery != "" || u.ForceQuery {
		rest = u.EscapedPath() + "?" + u.RawQuery
	}
	for from := 0; ; {
		i := strings.Index(text[from:], "://")
		if i < 0 {
			return false
		}
		from += i + len("://")
		at := text[from:]
		if len(at) < len(host)+len(rest) || !strings.EqualFold(at[:len(host)], host) || !strings.HasPrefix(at[len(host):], rest) {
			continue
		}
		behind := at[len(host)+len(rest):]
		if rest == "" && (goesOn(behind) || strings.HasPrefix(behind, ":")) {
			continue
		}
		if c, _ := utf8.DecodeRuneInString(behind); behind == "" || !ofHost(c) && c != '%' {
			return true
		}
	}
}
