// Package setup asks the questions of init, checks each answer with its server,
// and writes the file of settings that serve starts with.
package setup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"gatehouse/cmd/gatehouse/doctor"
	"gatehouse/configs"
	"gatehouse/configs/values"
	"gatehouse/core"
)

// Flags are answers given on the command line; their questions are not asked.
type Flags struct {
	Vault             string `type:"path" placeholder:"DIR" help:"Folder that holds everything; without it GATEHOUSE_VAULT_PATH or its default."`
	TelegramTokenFile string `type:"path" placeholder:"FILE" help:"File with the Telegram bot's token; it is read from there later, too."`
	DiscordTokenFile  string `type:"path" placeholder:"FILE" help:"The same for Discord."`
	ModelKeyFile      string `type:"path" placeholder:"FILE" help:"File with a key for Anthropic (sk-ant-…) or OpenAI."`
	ModelURL          string `name:"model-url" placeholder:"URL" help:"Address of an OpenAI-compatible server, such as http://127.0.0.1:11434/v1."`
	Model             string `placeholder:"NAME" help:"The model, such as anthropic/NAME or openai/NAME; without it the first that the provider lists."`
	AdminPasswordFile string `type:"path" placeholder:"FILE" help:"File with the panel's password."`
	Claim             bool   `help:"Make the code with which you become the owner, without asking."`
	Force             bool   `help:"Overwrite a file of settings that is there."`
}

// Options are what the questions need from the program.
type Options struct {
	Flags Flags
	In    *os.File // answers; nil: none
	Out   io.Writer
	Path  string // the file to write; "": the default

	// TryModel asks the first model of a configuration for one token.
	TryModel func(ctx context.Context, cfg *configs.Config) (name string, err error)
	// NewClaim creates a claim code with the settings of the written file.
	NewClaim func(ctx context.Context) (code string, expires time.Time, err error)
}

// Run asks what cfg and the flags leave open and writes the file of settings.
// It writes nothing if an answer is refused.
func Run(ctx context.Context, cfg *configs.Config, o Options) error {
	s := &setup{Options: o, ctx: ctx, cfg: cfg, ask: newAsker(ctx, o.In, o.Out), path: o.Path}
	if err := s.where(); err != nil {
		return err
	}
	if err := s.mayWrite(); err != nil {
		return err
	}
	var secrets []string
	s.lines, secrets = cfg.Kept()
	if vault := o.Flags.Vault; vault != "" {
		cfg.VaultPath = vault
		s.set("GATEHOUSE_VAULT_PATH", vault)
	}
	for _, name := range secrets {
		s.ask.say("%s is set in the environment; it stays there and is not written.\n", name)
	}
	for _, question := range []func() error{s.telegram, s.discord, s.model, s.password} {
		if err := question(); err != nil {
			return err
		}
	}
	if err := cfg.Validate(); err != nil {
		return err
	}
	if err := configs.WriteEnvFile(s.path, s.lines, s.replace); err != nil {
		return fmt.Errorf("write settings: %w", err)
	}
	s.ask.say("\nWritten to %s (mode 0600).\n", s.path)
	if err := s.claim(); err != nil {
		return err
	}
	s.ask.say("\nStart it:\n\n  %s serve --env-file %s\n\nThen open the panel: %s\n\n", shellWord(os.Args[0]), shellWord(s.path), panel(s.cfg.Addr))
	return nil
}

// A setup is one run of the questions.
type setup struct {
	Options
	ctx     context.Context
	cfg     *configs.Config // as it will be
	ask     *asker
	path    string
	replace bool
	lines   []configs.EnvLine
}

// set notes a line of the file, in place of one of that name.
func (s *setup) set(name, value string) {
	for i, l := range s.lines {
		if l.Name == name {
			s.lines[i].Value = value
			return
		}
	}
	s.lines = append(s.lines, configs.EnvLine{Name: name, Value: value})
}

func (s *setup) where() error {
	if s.path != "" {
		return nil
	}
	if s.path = File(); s.path == "" {
		return core.Errorf(core.Invalid, "there is no home folder for the file of settings: name one with --env-file")
	}
	return nil
}

// File returns where settings are written if no file is named; "" without a home folder.
func File() string {
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return filepath.Join(home, ".config", "gatehouse", "gatehouse.env")
}

// mayWrite settles, before anything is asked, what becomes of a file that is there.
func (s *setup) mayWrite() error {
	_, err := os.Lstat(s.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("file of settings: %w", err)
	case s.Flags.Force:
		s.replace = true
		return nil
	case s.ask.terminal:
		if s.replace, err = s.ask.yes(s.path+" is there already. Overwrite it? [y/N]", false); err != nil || s.replace {
			return err
		}
	}
	return core.Errorf(core.Conflict, "%s is there already and was left alone: --force overwrites it, --env-file names another one", s.path)
}

// tries is how often a wrong answer may be given on a terminal.
const tries = 3

// until asks for a secret, or takes it from file, until take accepts it. An
// empty answer skips the question. On no terminal the first refusal is final.
func (s *setup) until(file, prompt string, take func(answer string) error) error {
	if file != "" {
		answer, err := values.ReadSecret(file)
		if err != nil {
			return core.Errorf(core.Invalid, "%v", err)
		}
		return take(answer.Reveal())
	}
	for left := tries; ; left-- {
		answer, err := s.ask.secret(prompt)
		if err != nil {
			return err
		}
		if answer == "" {
			s.ask.say("    skipped\n")
			return nil
		}
		if err = take(answer); err == nil || !s.ask.terminal || left <= 1 {
			return err
		}
		s.ask.say("    %s\n    Try again, or press Enter to skip.\n", core.TextOf(err))
	}
}

// panel returns the panel's address as a browser on this machine reaches it.
func panel(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if ip := net.ParseIP(host); err == nil && (host == "" || ip != nil && ip.IsUnspecified()) {
		addr = net.JoinHostPort("127.0.0.1", port)
	}
	return "http://" + addr + "/admin"
}

// hasBot reports whether the gateway will have a bot, which an owner can claim.
func (s *setup) hasBot() bool {
	if s.cfg.TelegramToken.IsSet() || s.cfg.DiscordToken.IsSet() {
		return true
	}
	file, _ := s.cfg.BotsPath()
	_, err := os.Stat(file)
	return file != "" && err == nil
}

// claim makes the owner's code. It is asked last, because it does not last.
func (s *setup) claim() error {
	if !s.hasBot() {
		s.ask.say("\n5/5  There is no bot yet, so there is no code with which to become its owner. When you have\n     a bot's token, run init again, and then 'gatehouse claim'.\n")
		return nil
	}
	wanted := s.Flags.Claim
	if !wanted {
		var err error
		if wanted, err = s.ask.yes("\n5/5  Make the code now with which you become the owner in chat? It works for 15 minutes. [Y/n]", true); err != nil {
			return err
		}
	}
	if !wanted {
		s.ask.say("    skipped; 'gatehouse claim' makes one at any time\n")
		return nil
	}
	if err := os.MkdirAll(s.cfg.VaultPath, 0o700); err != nil {
		return fmt.Errorf("make the vault: %w", err)
	}
	if err := configs.UseEnvFile(s.path); err != nil {
		return err
	}
	code, expires, err := s.NewClaim(s.ctx)
	if err != nil { // what was written is good all the same
		s.ask.say("    No code was made: %s\n", doctor.Reason(err))
		return nil
	}
	s.ask.say("    Start the gateway, then send this to the bot in a direct message, before %s:\n\n      /claim %s\n", expires.Local().Format("2006-01-02 15:04"), code)
	return nil
}

// shellWord writes s so that a shell takes it as one word.
func shellWord(s string) string {
	if strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-+=:,@%") == "" && s != "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
