package telegramtest

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"gatehouse/core"
)

// getMe implements [api] getMe; the flags are those of [server] JsonUser.
func (s *Server) getMe(c *call) (any, *apiError) {
	return struct {
		Account
		Join      bool `json:"can_join_groups"`
		ReadAll   bool `json:"can_read_all_group_messages"`
		Inline    bool `json:"supports_inline_queries"`
		Business  bool `json:"can_connect_to_business"`
		MainApp   bool `json:"has_main_web_app"`
		HasTopics bool `json:"has_topics_enabled"`
	}{Account: c.bot.account, Join: true, ReadAll: !c.bot.privacy}, nil
}

// setWebhook implements [api] setWebhook as far as polling bots meet it: the URL must
// be HTTPS; updates are not delivered to it, they wait.
func (s *Server) setWebhook(c *call) (any, *apiError) {
	url := c.p["url"]
	if url == "" {
		return s.deleteWebhook(c)
	}
	if !strings.HasPrefix(strings.ToLower(url), "https://") {
		return nil, bad("bad webhook: An HTTPS URL must be provided for webhook")
	}
	c.bot.allow(c.p["allowed_updates"])
	c.bot.clash(c.now, "terminated by setWebhook request") // [server] abort_long_poll
	c.bot.webhook = url
	if c.p.boolean("drop_pending_updates") {
		c.bot.queue = nil
	}
	return true, nil
}

func (s *Server) deleteWebhook(c *call) (any, *apiError) {
	c.bot.webhook = ""
	if c.p.boolean("drop_pending_updates") {
		c.bot.queue = nil
	}
	return true, nil
}

func (s *Server) webhookInfo(c *call) (any, *apiError) {
	c.bot.expire(c.now)
	return struct {
		URL     string   `json:"url"`
		Custom  bool     `json:"has_custom_certificate"`
		Pending int      `json:"pending_update_count"`
		Allowed []string `json:"allowed_updates,omitempty"`
	}{c.bot.webhook, false, len(c.bot.queue), c.bot.allowed}, nil
}

// getChat implements [api] getChat with the fields a gateway may check.
func (s *Server) getChat(c *call) (any, *apiError) {
	room, err := s.reach(c, read)
	if err != nil {
		return nil, err
	}
	return struct {
		wireChat
		AccentColor int `json:"accent_color_id"`
		MaxReaction int `json:"max_reaction_count"`
	}{s.wireChat(room), 0, 11}, nil
}

// commandName is what [api] BotCommand allows: 1-32 characters, lowercase
// English letters, digits and underscores.
var commandName = core.Pattern(`^[a-z0-9_]+$`)

// setCommands implements [api] setMyCommands: at most 100; errors from [server]
// get_bot_commands and [td] BotCommand.cpp.
func (s *Server) setCommands(c *call) (any, *apiError) {
	raw := c.p["commands"]
	var value any
	if raw != "" && json.Unmarshal([]byte(raw), &value) != nil {
		return nil, bad("can't parse commands JSON object")
	}
	var list []Command
	if raw != "" {
		if _, ok := value.([]any); !ok {
			return nil, bad("expected an Array of BotCommand")
		}
		if json.Unmarshal([]byte(raw), &list) != nil {
			return nil, bad("can't parse BotCommand: expected an Object")
		}
	}
	scope, err := commandScope(c.p)
	if err != nil {
		return nil, err
	}
	for i, cmd := range list {
		cmd.Command = strings.TrimPrefix(cmd.Command, "/")
		list[i] = cmd
		switch {
		case cmd.Command == "":
			return nil, bad("command must be non-empty")
		case utf8.RuneCountInString(cmd.Command) > 32:
			return nil, bad("command length must not exceed 32")
		case strings.TrimSpace(cmd.Description) == "":
			return nil, bad("command description must be non-empty")
		case utf8.RuneCountInString(cmd.Description) > 256:
			return nil, bad("command description length must not exceed 256")
		case !commandName().MatchString(cmd.Command):
			return nil, bad("BOT_COMMAND_INVALID")
		}
	}
	if len(list) > 100 {
		return nil, bad("BOT_COMMANDS_TOO_MUCH")
	}
	if len(c.bot.commands) >= 1000 { // ours: scopes are few
		return nil, bad("too many scopes")
	}
	c.bot.commands[scope] = list
	return true, nil
}

func (s *Server) getCommands(c *call) (any, *apiError) {
	scope, err := commandScope(c.p)
	if err != nil {
		return nil, err
	}
	if list := c.bot.commands[scope]; list != nil {
		return list, nil
	}
	return []Command{}, nil
}

func (s *Server) deleteCommands(c *call) (any, *apiError) {
	scope, err := commandScope(c.p)
	if err != nil {
		return nil, err
	}
	delete(c.bot.commands, scope)
	return true, nil
}

// commandScope returns the key of a menu: [api] BotCommandScope and language.
func commandScope(p params) (string, *apiError) {
	scope := struct {
		Type string `json:"type"`
		Chat any    `json:"chat_id"`
		User any    `json:"user_id"`
	}{Type: "default"}
	if raw := p["scope"]; raw != "" && json.Unmarshal([]byte(raw), &scope) != nil {
		return "", bad("can't parse BotCommandScope: expected an Object")
	}
	return fmt.Sprint(scope.Type, " ", scope.Chat, " ", scope.User, " ", p["language_code"]), nil
}

// Commands returns the bot's default menu, as the app shows it.
func (b Bot) Commands() []Command {
	b.s.mu.Lock()
	defer b.s.mu.Unlock()
	scope, _ := commandScope(params{})
	return append([]Command(nil), b.b.commands[scope]...)
}
