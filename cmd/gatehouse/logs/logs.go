// Package logs makes the program's log, from which secrets are removed.
package logs

import (
	"bytes"
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
		return slog.New(leveled{slog.NewJSONHandler(sink, o), level})
	}
	return slog.New(leveled{slog.NewTextHandler(sink, o), level})
}

// leveled is the log's handler with a level that the panel can change.
type leveled struct {
	slog.Handler
	level *slog.LevelVar
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

func (r *redactor) Write(line []byte) (int, error) {
	out := line
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
	out = tokens.ReplaceAll(out, []byte("[redacted]"))
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, err := r.w.Write(out); err != nil {
		return 0, err
	}
	return len(line), nil
}
