// Package speech builds what transcribes recordings, from the settings.
package speech

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/prometheus/client_golang/prometheus"

	"gatehouse/configs"
	"gatehouse/core/llm/transcribe"
	"gatehouse/core/sandbox"
	"gatehouse/core/voice"
	"gatehouse/core/voice/hearing"
	"gatehouse/core/voice/program"
)

// Options for Open.
type Options struct {
	Config  *configs.Config
	Files   func(name string) (*os.File, error) // opens a file of the vault, through no link
	Box     func() (sandbox.Box, string)        // of program.Options
	Quota   hearing.Quota
	Runtime string // directory of the gateway's own files
	Log     *slog.Logger
	Metrics prometheus.Registerer
}

// Open returns what transcribes recordings of the vault, and what ends it.
func Open(o Options) (*hearing.Hearer, func() error, error) {
	end := func() error { return nil }
	dir := filepath.Join(o.Runtime, "voice")
	if err := os.RemoveAll(dir); err != nil { // what an interrupted run left
		return nil, end, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, end, fmt.Errorf("directory of recordings: %w", err)
	}
	programs := program.Options{Box: o.Box, Dir: dir}
	var engine voice.Transcriber
	switch cfg := o.Config; {
	case cfg.TranscribeCommand != "":
		if e, err := program.NewEngine(programs, cfg.TranscribeCommand, cfg.TranscribeModel); err == nil {
			engine = e
		} else { // recordings are kept, and transcribed when it is fixed
			o.Log.Error("recordings are not transcribed", "setting", "GATEHOUSE_TRANSCRIBE_COMMAND", "err", err)
			engine = broken{err}
		}
	case cfg.TranscribeURL != "":
		s, endServer, err := Server(cfg)
		if err != nil {
			return nil, end, err
		}
		engine, end = s, endServer
	}
	return hearing.New(hearing.Options{
		Open:   func(path string) (io.ReadCloser, error) { return o.Files(path) },
		Engine: engine, Quota: o.Quota, Convert: program.NewFFmpeg(programs), Metrics: hearing.NewMetrics(o.Metrics),
	}), end, nil
}

// broken is a command that cannot be started.
type broken struct{ err error }

func (b broken) Transcribe(context.Context, []int16) (string, error) { return "", b.err }

// Model returns the name of the model that transcribes, as OpenAI's clients ask for it. The
// model of a command is a file of the host, which they do not learn of.
func Model(cfg *configs.Config) string {
	if cfg.TranscribeCommand != "" {
		return transcribe.Model
	}
	return cmp.Or(cfg.TranscribeModel, transcribe.Model)
}

// Server returns the configured server, and what ends it. It gets the OpenAI key only
// where it is the same server.
func Server(cfg *configs.Config) (hearing.Server, func() error, error) {
	key := ""
	if cfg.SameServer(cfg.TranscribeURL) {
		key = cfg.OpenaiAPIKey.Reveal()
	}
	c, err := transcribe.New(cfg.TranscribeURL, key)
	if err != nil {
		return hearing.Server{}, nil, err
	}
	c.Model = Model(cfg)
	return hearing.Server{Whole: c}, c.Close, nil
}
