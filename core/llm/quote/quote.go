// Package quote is the built-in model "local/quote": it needs no key and no
// network, and answers by quoting the passages of the vault that fit the
// question best, out of the files that the sender may read. It is what a
// fresh Gatehouse answers with, and what tests above the wire run on.
package quote

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"
	"unicode"

	"gatehouse/core"
	"gatehouse/core/llm"
	"gatehouse/core/texts"
)

// Name is the model's name as users write it; "local/quote:30ms" adds a delay per
// emitted token.
const Name = "local/quote"

const (
	maxDelay    = 10 * time.Second // per token
	maxPassages = 3                // in one answer
	maxQuote    = 500              // bytes of one passage
	maxWords    = 24               // search terms of one question
	maxUses     = 16               // tool calls of one round
	maxRounds   = 8                // of one message
	maxEcho     = 2000             // bytes of tool results that are repeated
)

// A Passage is a piece of a file.
type Passage struct {
	Path  string // in the vault, with slashes
	Line  int    // of its first line, from 1
	Text  string // at most 500 bytes
	Score float64
}

// A Search returns the best passages for the lower-case terms among the files that
// sender may read, best first, at most limit.
type Search func(ctx context.Context, sender llm.Sender, words []string, limit int) ([]Passage, error)

// A Model is local/quote. It is safe for use by many goroutines.
type Model struct {
	name   string
	search Search
	clock  core.Clock
	delay  time.Duration
	quiet  bool // no hint
}

// New returns the model of this name: "local/quote", or with a delay per token of at
// most 10 s "local/quote:30ms". Any other name is an Invalid error.
func New(name string, search Search, clock core.Clock) (*Model, error) {
	m := &Model{name: name, search: search, clock: clock}
	rest, ok := strings.CutPrefix(name, Name)
	if !ok {
		return nil, core.Errorf(core.Invalid, "model %q is not %s", name, Name)
	}
	if rest == "" {
		return m, nil
	}
	text, ok := strings.CutPrefix(rest, ":")
	delay, err := time.ParseDuration(text)
	if !ok || err != nil || delay < 0 || delay > maxDelay {
		return nil, core.Errorf(core.Invalid, "model %q: the delay is not like %s:30ms, at most %v", name, Name, maxDelay)
	}
	m.delay = delay
	return m, nil
}

// WithoutHint returns m without the closing line about a missing language model:
// for a gateway that has one, and quotes only while that one is out of reach.
func (m *Model) WithoutHint() *Model {
	copied := *m
	copied.quiet = true
	return &copied
}

// About means that tools may be offered (see Reply).
func (m *Model) About() llm.About { return llm.About{Name: m.name, Tools: true} }

// Reply answers the last user message as a stream. The same request and files give the
// same answer. Usage is estimated as four tokens per three blank-separated parts.
//
// The message can script the model, which is how tests make it use tools. A line `use
// NAME {json}` becomes a call of the tool NAME if that is offered; all such lines, up to
// 16, are calls of one answer. A line `then` starts the next round, made after the
// results, at most 8 rounds. `think: TEXT` emits thinking before its round's calls, and
// `say: TEXT` emits text there. Results are answered with the next round, and after the
// last one by repeating them, so that every loop ends. Results are never parsed as such
// lines.
func (m *Model) Reply(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		last := lastUser(req.Messages)
		if r, ok := nextRound(req); ok {
			m.act(ctx, req, r, yield)
			return
		}
		text, err := m.answer(ctx, req, last)
		if err != nil {
			yield(llm.Delta{}, err)
			return
		}
		m.stream(ctx, req, text, yield)
	}
}

// stream yields text token by token, then usage and reason.
func (m *Model) stream(ctx context.Context, req *llm.Request, text string, yield func(llm.Delta, error) bool) {
	words, stop := int64(0), "end_turn"
	first := m.name
	for rest := text; rest != ""; {
		if req.MaxTokens > 0 && tokens(words+1) > int64(req.MaxTokens) {
			stop = "max_tokens"
			break
		}
		if err := m.wait(ctx); err != nil {
			yield(llm.Delta{}, err)
			return
		}
		n := wordEnd(rest)
		if !yield(llm.Delta{Text: rest[:n], Model: first}, nil) {
			return
		}
		rest, first = rest[n:], ""
		words++
	}
	yield(llm.Delta{Usage: &core.Tokens{Input: input(req), Output: tokens(words)}, Stop: stop}, nil)
}

func (m *Model) wait(ctx context.Context) error {
	if m.delay > 0 {
		core.Sleep(ctx, m.clock, m.delay)
	}
	return ended(ctx)
}

// ended returns why ctx ended, or nil.
func ended(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", Name, context.Cause(ctx))
}

// answer returns the whole text.
func (m *Model) answer(ctx context.Context, req *llm.Request, last []core.Block) (string, error) {
	if echo := results(last); echo != "" {
		return echo + unseen(req), nil
	}
	found, err := m.find(ctx, req.Sender, Words(text(last)))
	if err != nil {
		return "", err
	}
	var b strings.Builder
	switch len(found) {
	case 0:
		b.WriteString(texts.Text("quote_nothing"))
	case 1:
		b.WriteString(texts.Text("quote_one"))
	default:
		b.WriteString(texts.Text("quote_several", texts.With{"Passages": len(found)}))
	}
	for _, p := range found {
		b.WriteString("\n\n" + blockquote(p.Text) + "\n\n" + codeSpan(p.Path) + ", " + texts.Text("quote_line") + " " + strconv.Itoa(p.Line))
	}
	b.WriteString(unseen(req))
	if !m.quiet && firstTurn(req.Messages) {
		b.WriteString("\n\n" + texts.Text("quote_hint")) // once in a conversation
	}
	return b.String(), nil
}

// unseen reports of the last message's pictures and documents that no one looked.
func unseen(req *llm.Request) string {
	if len(req.Messages) == 0 {
		return ""
	}
	var b strings.Builder
	last := req.Messages[len(req.Messages)-1:]
	choice := llm.MediaLimits{}.Choose(last)
	for i := range last[0].Blocks {
		for k := range last[0].Blocks[i].Media {
			if line, sent := choice.LeftOut(&last[0].Blocks[i].Media[k]); !sent {
				b.WriteString("\n\n" + line)
			}
		}
	}
	return b.String()
}

// find searches; without terms it returns nothing.
func (m *Model) find(ctx context.Context, sender llm.Sender, words []string) ([]Passage, error) {
	if err := ended(ctx); err != nil || len(words) == 0 || m.search == nil {
		return nil, err
	}
	found, err := m.search(ctx, sender, words, maxPassages)
	if err == nil {
		return found[:min(len(found), maxPassages)], nil
	}
	if e := ended(ctx); e != nil || errors.Is(err, context.Canceled) {
		return nil, errors.Join(e, err)
	}
	return nil, &llm.Fault{Code: llm.CodeUnavailable, Text: texts.Text("quote_failed"),
		CanRetry: true, Err: err}
}

// firstTurn reports whether nothing was answered before.
func firstTurn(messages []llm.Message) bool {
	for _, m := range messages {
		if m.Role == "assistant" {
			return false
		}
	}
	return true
}

// lastUser returns the blocks of the last message, if a user sent it.
func lastUser(messages []llm.Message) []core.Block {
	if len(messages) == 0 || messages[len(messages)-1].Role != "user" {
		return nil
	}
	return messages[len(messages)-1].Blocks
}

func text(blocks []core.Block) string {
	var out []string
	for _, b := range blocks {
		if b.Type == "text" {
			out = append(out, b.Text)
		}
	}
	return strings.Join(out, "\n")
}

// results repeats tool results; "" when there are none.
func results(blocks []core.Block) string {
	var out []string
	for _, b := range blocks {
		if b.Type == "tool_result" {
			out = append(out, texts.Text("quote_tool", texts.With{"Failed": b.IsError})+"\n\n"+blockquote(cut(b.Text, maxEcho)))
		}
	}
	return strings.Join(out, "\n\n")
}

// blockquote quotes Markdown: headings become bold, the rest stays.
func blockquote(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, ""))
	var b strings.Builder
	for line := range strings.SplitSeq(strings.TrimSpace(s), "\n") {
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		if title, ok := heading(line); ok {
			line = "**" + strings.ReplaceAll(title, "*", "") + "**"
		}
		b.WriteString(strings.TrimRight("> "+line, " "))
	}
	return b.String()
}

// codeSpan returns s in code style; a path holds no line break, and a backtick in it is
// shown as a quote.
func codeSpan(s string) string {
	return "`" + strings.Map(func(r rune) rune {
		if r == '`' || unicode.IsControl(r) {
			return '\''
		}
		return r
	}, s) + "`"
}

// wordEnd returns the length of the first token of s with the blanks after it.
func wordEnd(s string) int {
	inWord, blankBefore := false, false
	for i, r := range s {
		blank := unicode.IsSpace(r)
		if inWord && blankBefore && !blank {
			return i
		}
		inWord, blankBefore = inWord || !blank, blank
	}
	return len(s)
}

// tokens returns an estimate, rounded up.
func tokens(words int64) int64 { return (words*4 + 2) / 3 }

func input(req *llm.Request) int64 {
	words := countWords(req.System)
	for _, m := range req.Messages {
		for _, b := range m.Blocks {
			words += countWords(b.Text) + countWords(string(b.Input))
		}
	}
	return tokens(words)
}

// countWords counts without allocating: this is paid for every reply.
func countWords(s string) (n int64) {
	in := false
	for i := range len(s) {
		blank := s[i] == ' ' || s[i] == '\n' || s[i] == '\t' || s[i] == '\r'
		if !blank && !in {
			n++
		}
		in = !blank
	}
	return n
}
