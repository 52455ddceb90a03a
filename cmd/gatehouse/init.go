package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"gatehouse/configs"
	"gatehouse/core"
)

// initCmd asks five questions and writes what serve begins with.
type initCmd struct {
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

func (c *initCmd) Help() string {
	return "Writes --env-file, or ~/.config/gatehouse/gatehouse.env, with mode 0600. What a flag answers is not asked. " +
		"Without a terminal the lines of standard input are the answers, in the order of the questions: Telegram token, Discord token, model key or address, password, y for a claim code; an empty line skips one, the end of input skips the rest, and a wrong answer ends it with nothing written. " +
		"The servers that are asked are those of GATEHOUSE_TELEGRAM_API_URL and so on; settings of the environment are kept."
}

func (c *initCmd) Run(p *process) error {
	cfg, err := configs.Load()
	if err != nil {
		return err
	}
	s := &setup{process: p, cmd: c, cfg: cfg, ask: newAsker(p), path: p.envFile}
	if err := s.where(); err != nil {
		return err
	}
	if err := s.mayWrite(); err != nil {
		return err
	}
	var secrets []string
	s.lines, secrets = cfg.Kept()
	if c.Vault != "" {
		cfg.VaultPath = c.Vault
		s.set("GATEHOUSE_VAULT_PATH", c.Vault)
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
	s.ask.say("\nStart it:\n\n  %s serve --env-file %s\n\n", shellWord(os.Args[0]), shellWord(s.path))
	return nil
}

// A setup is init under way.
type setup struct {
	*process
	cmd     *initCmd
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
	home, err := os.UserHomeDir()
	if err != nil {
		return core.Errorf(core.Invalid, "there is no home folder for the file of settings: name one with --env-file")
	}
	s.path = filepath.Join(home, ".config", "gatehouse", "gatehouse.env")
	return nil
}

// mayWrite settles, before anything is asked, what becomes of a file that is there.
func (s *setup) mayWrite() error {
	_, err := os.Lstat(s.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("file of settings: %w", err)
	case s.cmd.Force:
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
		answer, err := configs.ReadSecret(file)
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

// claim makes the owner's code. It is asked last, because it does not last.
func (s *setup) claim() error {
	wanted := s.cmd.Claim
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
	res, err := ask(&process{ctx: s.ctx, stdout: s.stdout, stderr: io.Discard}, "claim", order{})
	if err != nil { // what was written is good all the same
		s.ask.say("    No code was made: %s\n", doctorReason(err))
		return nil
	}
	s.ask.say("    Start the gateway, then send this to the bot in a direct message, before %s:\n\n      /claim %s\n", res.ExpiresAt.Local().Format("15:04"), res.Code)
	return nil
}

// shellWord writes s so that a shell takes it as one word.
func shellWord(s string) string {
	if strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-+=:,@%") == "" && s != "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
