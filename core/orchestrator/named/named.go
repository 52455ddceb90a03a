// Package named decides whether a host or an address was named in a text: by a
// user, or by what a search or a page returned. A page names addresses, never
// hosts: otherwise it could make a model send data to a host of its choice.
package named

import (
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"

	"gatehouse/core"
	"gatehouse/core/tool"
)

// A Result is what a tool returned, with the call that asked for it.
type Result struct {
	Tool  string
	Input json.RawMessage
	Text  string
}

// Names reports whether an answer from the web holds the address u, which must
// not be an echo of what the model sent there.
func (f Result) Names(u *url.URL, host string) bool {
	text := f.Text
	switch f.Tool {
	case "WebFetch":
	case "WebSearch":
		text = unquoted(text) // text of the provider's model is not a page that it found
	default:
		return false
	}
	return namesAddress(text, u, host) && !sent(f.Input, host)
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

// Found keeps results of fetches and searches of one run, for the addresses in
// them. It is safe for concurrent use.
type Found struct {
	mu      sync.Mutex
	results []Result // at most maxFound bytes of text
}

// maxFound bounds the text that Found keeps: the newest results.
const maxFound = 1 << 20

// Add keeps a result.
func (f *Found) Add(r Result) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.results = append(f.results, r)
	size := 0
	for i := len(f.results) - 1; i >= 0; i-- {
		if size += len(f.results[i].Text); size > maxFound {
			f.results = slices.Clone(f.results[i+1:])
			return
		}
	}
}

// Names reports whether one of the results names u.
func (f *Found) Names(u *url.URL, host string) bool {
	f.mu.Lock()
	found := slices.Clone(f.results)
	f.mu.Unlock()
	return slices.ContainsFunc(found, func(r Result) bool { return r.Names(u, host) })
}

// quotedFrom is the line above a quotation: see agent.Quoted.
var quotedFrom = regexp.MustCompile(`^From "[^"]*" \(([a-z ]+)\):$`)

// added begin the blocks that a prompt adds to a message: see incoming.
var added = []string{"Attached file ", "Given with this conversation", "To be answered again", "[Result of a tool] ", "[What was said before in this conversation:\n"}

// isNote reports whether a text is one line that is in brackets as a whole, like what prompts
// add about files, and connectors about stickers and contacts: the names in it are the text
// of others.
func isNote(text string) bool {
	text = strings.TrimRightFunc(text, unicode.IsSpace)
	return strings.HasPrefix(text, "[") && strings.HasSuffix(text, "]") && !strings.Contains(text, "\n")
}

// Own returns the lines of a message that its sender wrote, as it is in a chat or a
// transcript: neither files that came with it, notes nor quotations. In the transcript of a
// group the sender's text is a quotation too, marked with its trust.
func Own(text string) string {
	if slices.ContainsFunc(added, func(with string) bool { return strings.HasPrefix(text, with) }) || isNote(text) {
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
		if isNote(words) {
			continue
		}
		b.WriteString(words + "\n")
	}
	return b.String()
}

// likeFiles are top-level domains that users know as the ends of file names.
var likeFiles = []string{"cc", "md", "mov", "pm", "py", "rs", "sh", "zip"}

// ByUser reports whether a user's text names host. A host without a dot, or one that
// looks like a file name, must be written as an address: anyone may own readme.md.
func ByUser(text, host string) bool {
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
