// Package logs makes the program's log, from which secrets are removed.
package logs

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"regexp"
	"sync"

	"gatehouse/configs"
	"gatehouse/configs/values"
)

// New returns the program's log: one line per event on w, without the secrets of
// cfg. On a terminal it is text unless the settings say otherwise.
func New(w io.Writer, cfg *configs.Config, tty bool) *slog.Logger {
	sink := Redact(w).(*redactor)
	for _, s := range cfg.Secrets() {
		if v := s.Reveal(); len(v) >= 6 {
			sink.secrets = append(sink.secrets, []byte(v))
		}
	}
	source := cfg.Providers() // whose keys change
	sink.more = func() []values.Secret { return source.Now().Secrets() }
	level := new(slog.LevelVar)
	level.Set(cfg.LogLevel.Level())
	o := &slog.HandlerOptions{Level: level, ReplaceAttr: readable}
	if cfg.LogFormat == "json" || cfg.LogFormat == "" && !tty {
		return slog.New(leveled{slog.NewJSONHandler(sink, o), level, sink})
	}
	return slog.New(leveled{slog.NewTextHandler(sink, o), level, sink})
}

// leveled is the log's handler with a level that the panel can change.
type leveled struct {
	slog.Handler
	level *slog.LevelVar
	sink  *redactor
}

// Watch returns log with note called for each line at level error before it is written.
// clean removes secrets from a text.
func Watch(log *slog.Logger, note func(line slog.Record, clean func(string) string)) *slog.Logger {
	h, _ := log.Handler().(leveled)
	if h.Handler == nil { // not made by New
		h = leveled{log.Handler(), nil, &redactor{}}
	}
	h.Handler = watched{h.Handler, func(r slog.Record) { note(r, h.sink.clean) }}
	return slog.New(h)
}

type watched struct {
	slog.Handler
	note func(slog.Record)
}

func (w watched) Handle(ctx context.Context, r slog.Record) error {
	if r.Level >= slog.LevelError {
		w.note(r)
	}
	return w.Handler.Handle(ctx, r)
}

func (w watched) WithAttrs(a []slog.Attr) slog.Handler {
	return watched{w.Handler.WithAttrs(a), w.note}
}
func (w watched) WithGroup(name string) slog.Handler {
	return watched{w.Handler.WithGroup(name), w.note}
}

// LevelOf returns the level of a log that New made; nil for any other.
func LevelOf(log *slog.Logger) *slog.LevelVar {
	h, _ := log.Handler().(leveled)
	return h.level
}

// readable writes a duration as 1.5s, in JSON too, where it would be a number
// of nanoseconds.
func readable(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(a.Value.Duration().String())
	}
	return a
}

// tokens are the shapes of secrets that were not known when the log was made:
// API keys of the gateway, and tokens of Telegram's and Discord's bots.
var tokens = regexp.MustCompile(`gh_[A-Za-z0-9_-]{32}|\b[0-9]{6,12}:[A-Za-z0-9_-]{30,}|\b[A-Za-z0-9_-]{23,28}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,}`)

// A redactor blanks secrets in what passes. Each Write is one line.
type redactor struct {
	mu      sync.Mutex
	w       io.Writer
	secrets [][]byte
	more    func() []values.Secret // that change while the program runs; nil: none
}

// Redact returns a writer to w that blanks what has the shape of a secret. Each
// Write is one line.
func Redact(w io.Writer) io.Writer { return &redactor{w: w} }

func (r *redactor) clean(text string) string { return string(r.blank([]byte(text))) }

// blank returns text without secrets.
func (r *redactor) blank(text []byte) []byte {
	out := text
	for _, s := range r.secrets {
		if bytes.Contains(out, s) {
			out = bytes.ReplaceAll(out, s, []byte("[redacted]"))
		}
	}
	if r.more != nil {
		for _, s := range r.more() {
			if v := s.Reveal(); len(v) >= 6 {
				out = bytes.ReplaceAll(out, []byte(v), []byte("[redacted]"))
			}
		}
	}
	return tokens.ReplaceAll(out, []byte("[redacted]"))
}

func (r *redactor) Write(line []byte) (int, error) {
	out := r.blank(line)
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, err := r.w.Write(out); err != nil {
		return 0, err
	}
	return len(line), nil
}
