package setup

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"unicode/utf8"

	"gatehouse/cmd/gatehouse/doctor"
	"gatehouse/configs"
	"gatehouse/configs/values"
	"gatehouse/connectors"
	"gatehouse/connectors/discord"
	"gatehouse/connectors/telegram"
	"gatehouse/core"
)

// wrongForm is the error of a token that can't be one; it does not hold it.
func wrongForm(platform, token string) error {
	if err := configs.CheckToken(platform, token); err != nil {
		return core.Errorf(core.Invalid, "It %s.", err)
	}
	return nil
}

// typed returns err, or instead of a platform's refusal the text for a user who has
// just typed the token. The error's own text is for a gateway that runs.
func typed(err error, refused string) error {
	if core.KindOf(err) == core.Denied {
		return core.Errorf(core.Denied, "%s", refused)
	}
	return err
}

// keep notes a secret: the file that it was given in, or itself.
func (s *setup) keep(name, file, secret string) {
	if file != "" {
		s.set(name+"_FILE", file)
		return
	}
	s.set(name, secret)
}

func (s *setup) telegram() error {
	if s.cfg.TelegramToken.IsSet() && s.Flags.TelegramTokenFile == "" {
		return nil
	}
	return s.until(s.Flags.TelegramTokenFile, "\n1/5  A Telegram bot's token, from @BotFather (/newbot); Enter skips:", func(token string) error {
		if err := wrongForm(telegram.Platform, token); err != nil {
			return err
		}
		b, err := telegram.New(telegram.Options{Name: telegram.Platform, Token: token, APIURL: s.cfg.TelegramApiURL, Cursors: connectors.NoCursors{}})
		if err != nil {
			return err
		}
		defer func() { _ = b.Close() }()
		ctx, cancel := context.WithTimeout(s.ctx, doctor.Wait)
		defer cancel()
		me, err := b.Identity(ctx)
		if err != nil {
			return typed(err, telegram.TokenRefused)
		}
		s.ask.say("    It is @%s.\n", me.Username)
		if !me.ReadsGroups {
			s.ask.say("    In groups it receives mentions, commands and replies to it. To let it see all messages:\n    @BotFather, /setprivacy, Disable; then remove it from the group and add it again.\n")
		}
		s.cfg.TelegramToken = values.NewSecret(token)
		s.keep("GATEHOUSE_TELEGRAM_TOKEN", s.Flags.TelegramTokenFile, token)
		return nil
	})
}

func (s *setup) discord() error {
	if s.cfg.DiscordToken.IsSet() && s.Flags.DiscordTokenFile == "" {
		return nil
	}
	return s.until(s.Flags.DiscordTokenFile, "\n2/5  A Discord bot's token, from the developer portal (Bot, Reset Token); Enter skips:", func(token string) error {
		token = strings.TrimPrefix(token, "Bot ")
		if err := wrongForm(discord.Platform, token); err != nil {
			return err
		}
		b, err := discord.New(discord.Options{Name: discord.Platform, Token: token, APIURL: s.cfg.DiscordApiURL, Cursors: connectors.NoCursors{}})
		if err != nil {
			return err
		}
		defer func() { _ = b.Close() }()
		ctx, cancel := context.WithTimeout(s.ctx, doctor.Wait)
		defer cancel()
		me, err := b.Identity(ctx)
		if err != nil {
			return typed(err, discord.TokenRefused)
		}
		s.ask.say("    It is %s. Invite it to a server:\n    %s\n", me.Username, me.Invite)
		if !me.Content {
			s.ask.say("    It reads direct messages and mentions only. To have it read the rest:\n    developer portal, your application, Bot, switch on \"Message Content Intent\".\n")
		}
		s.cfg.DiscordToken = values.NewSecret(token)
		s.keep("GATEHOUSE_DISCORD_TOKEN", s.Flags.DiscordTokenFile, token)
		return nil
	})
}

// model takes a key or an address and has the model say one token.
func (s *setup) model() error {
	keyed := s.cfg.AnthropicAPIKey.IsSet() || s.cfg.OpenaiAPIKey.IsSet()
	if s.Flags.ModelURL == "" && s.Flags.ModelKeyFile == "" && (keyed || strings.HasPrefix(s.Flags.Model, "local/")) {
		return s.tryModel(s.cfg, nil)
	}
	if s.Flags.ModelURL != "" {
		next := *s.cfg
		next.OpenaiBaseURL = s.Flags.ModelURL
		lines := []configs.EnvLine{{Name: "GATEHOUSE_OPENAI_BASE_URL", Value: s.Flags.ModelURL}}
		if s.Flags.ModelKeyFile == "" {
			return s.tryModel(&next, lines)
		}
		return s.until(s.Flags.ModelKeyFile, "", func(key string) error {
			next.OpenaiAPIKey = values.NewSecret(key)
			return s.tryModel(&next, append(lines, configs.EnvLine{Name: "GATEHOUSE_OPENAI_API_KEY_FILE", Value: s.Flags.ModelKeyFile}))
		})
	}
	prompt := "\n3/5  A key for Anthropic (sk-ant-…) or OpenAI (sk-…), or the address of an OpenAI-compatible\n     server (http://127.0.0.1:11434/v1); Enter skips, and the bot then quotes your notes:"
	answered := false
	err := s.until(s.Flags.ModelKeyFile, prompt, func(answer string) error {
		answered = true
		next := *s.cfg
		name, value := "GATEHOUSE_OPENAI_API_KEY", answer
		switch {
		case strings.HasPrefix(answer, "http://") || strings.HasPrefix(answer, "https://"):
			name, next.OpenaiBaseURL = "GATEHOUSE_OPENAI_BASE_URL", answer
			s.ask.say("    The address is %s.\n", shown(answer)) // a terminal did not show it
		case strings.HasPrefix(answer, "sk-ant-"):
			name, next.AnthropicAPIKey = "GATEHOUSE_ANTHROPIC_API_KEY", values.NewSecret(answer)
		default:
			next.OpenaiAPIKey = values.NewSecret(answer)
		}
		if s.Flags.ModelKeyFile != "" {
			name, value = name+"_FILE", s.Flags.ModelKeyFile
		}
		return s.tryModel(&next, []configs.EnvLine{{Name: name, Value: value}})
	})
	if err == nil && !answered && (s.cfg.HasProvider() || s.Flags.Model != "") {
		return s.tryModel(s.cfg, nil) // an address without a key
	}
	return err
}

// shown returns an address without a password in it.
func shown(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "not a URL"
	}
	return u.Redacted()
}

// tryModel asks the model of next for one token and, when it answers, keeps
// next's settings.
func (s *setup) tryModel(next *configs.Config, lines []configs.EnvLine) error {
	if s.Flags.Model != "" {
		next.Model = s.Flags.Model
		lines = append(lines, configs.EnvLine{Name: "GATEHOUSE_MODEL", Value: s.Flags.Model})
	}
	if err := next.Validate(); err != nil {
		return core.Errorf(core.Invalid, "%v", err)
	}
	name, err := s.TryModel(s.ctx, next)
	if err != nil {
		return err
	}
	s.ask.say("    %s answers.\n", name)
	*s.cfg = *next
	for _, l := range lines {
		s.set(l.Name, l.Value)
	}
	return nil
}

func (s *setup) password() error {
	if s.cfg.AdminPassword.IsSet() && s.Flags.AdminPasswordFile == "" {
		return nil
	}
	prompt := fmt.Sprintf("\n4/5  A password for the panel, %d characters or more; Enter skips, and the first start in a\n     terminal prints a one-time password:", doctor.MinPassword)
	return s.until(s.Flags.AdminPasswordFile, prompt, func(password string) error {
		if fault := weak(password); fault != "" {
			return core.Errorf(core.Invalid, "The password %s.", fault)
		}
		if s.ask.terminal && s.Flags.AdminPasswordFile == "" {
			again, err := s.ask.secret("     The same again:")
			if err != nil {
				return err
			}
			if again != password {
				return core.Errorf(core.Invalid, "That was not the same.")
			}
		}
		s.ask.say("    good\n")
		s.cfg.AdminPassword = values.NewSecret(password)
		s.keep("GATEHOUSE_ADMIN_PASSWORD", s.Flags.AdminPasswordFile, password)
		return nil
	})
}

// common are parts of passwords that are tried first.
var common = []string{"password", "passwort", "123456", "qwerty", "qwertz", "letmein", "gatehouse", "admin", "welcome"}

// weak reports what makes a password easy to guess; "" when nothing is seen. What
// is left of it without the common parts must still be long enough.
func weak(password string) string {
	rest := strings.ToLower(password)
	for _, word := range common {
		rest = strings.ReplaceAll(rest, word, "")
	}
	different := map[rune]bool{}
	for _, r := range rest {
		different[r] = true
	}
	switch {
	case utf8.RuneCountInString(password) < doctor.MinPassword:
		return fmt.Sprintf("is too short: %d characters or more, such as four words", doctor.MinPassword)
	case len(password) > 256:
		return "is longer than 256 bytes"
	case utf8.RuneCountInString(rest) < doctor.MinPassword/2 || len(different) < 5:
		return "is easy to guess: take four unrelated words"
	}
	return ""
}
