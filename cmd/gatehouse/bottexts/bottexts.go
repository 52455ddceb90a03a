// Package bottexts shows and changes what bots say to users on their own: the texts
// that operators may override.
package bottexts

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"unicode/utf16"

	"gatehouse/admin/settings"
	"gatehouse/configs"
	"gatehouse/connectors/discord"
	"gatehouse/connectors/discord/markup"
	"gatehouse/connectors/telegram"
	"gatehouse/core"
	"gatehouse/core/texts"
)

// spareRoom is kept free in a message, for the note that it may be a repeat.
const spareRoom = 100

// RoomOn returns how much a text that was written again may take on a platform.
func RoomOn(platform string) texts.Room {
	if platform == discord.Platform {
		return texts.Room{Most: markup.MaxText - spareRoom, Size: markup.Size}
	}
	return texts.Room{Most: telegram.MaxText - spareRoom, Size: func(p core.Part) int { return len(utf16.Encode([]rune(p.Text))) }}
}

// Texts are what bots say to users on their own, as the panel shows and changes
// it (settings.Texts). All fields are needed.
type Texts struct {
	Find func(bot string) (configs.Bot, bool)
	Own  func(bot, name string) string // the overriding text; "" without one
	// Change changes a bot's settings, with an audit entry that has detail, if check
	// permits it.
	Change func(ctx context.Context, bot string, by core.Actor, detail map[string]any, change func(*configs.BotChange), check func(*configs.Config) error) error
}

func (v Texts) bot(name string) (configs.Bot, error) {
	b, ok := v.Find(name)
	if !ok {
		return b, core.Errorf(core.NotFound, "there is no bot named %s", core.CleanName(name))
	}
	return b, nil
}

func (v Texts) Texts(bot string) (list []settings.BotText, err error) {
	b, err := v.bot(bot)
	if err != nil {
		return nil, err
	}
	for _, o := range texts.Editable() {
		own := v.Own(bot, o.Name)
		row := settings.BotText{Name: o.Name, Title: o.Title, When: o.When, Default: texts.Default(o.Name), Own: own != "", Version: textVersion(own), Fields: fieldsOf(o, bot)}
		row.Body = row.Default
		said, err := texts.Say(o.Name, texts.Example(bot))
		if row.Own {
			row.Body = own
			if mine, bad := texts.SayOwn(o, own, texts.Example(bot)); bad == nil {
				said = mine
			}
		}
		if err != nil {
			return nil, err
		}
		room := RoomOn(b.Platform)
		row.Said, row.Size, row.Most = said, room.Size(said), room.Most
		list = append(list, row)
	}
	return list, nil
}

func fieldsOf(o texts.Own, bot string) (list []settings.TextField) {
	example := texts.Example(bot)
	about := map[string]settings.TextField{
		".Code":  {About: "the code that identifies the request", Example: example.Code},
		".Name":  {About: "the name that the person goes by; some have none", Example: example.Name},
		".Bot":   {About: "the bot’s name here", Example: example.Bot},
		".Until": {About: "the time from which the person is answered again, in their time zone", Example: example.Until},
	}
	for _, name := range o.Fields() {
		f := about[name]
		f.Name = name
		list = append(list, f)
	}
	return list
}

// textVersion identifies a version of an overridden text; "" is the default's.
func textVersion(body string) string {
	if body == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(body))
	return hex.EncodeToString(sum[:8])
}

func (v Texts) TryText(bot, name, body string) (settings.BotText, error) {
	b, o, err := v.override(bot, name)
	if err != nil {
		return settings.BotText{}, err
	}
	room := RoomOn(b.Platform)
	if err := o.Check(body, bot, room); err != nil {
		return settings.BotText{}, err
	}
	said, err := texts.SayOwn(o, body, texts.Example(bot))
	return settings.BotText{Name: name, Body: body, Said: said, Size: room.Size(said), Most: room.Most}, err
}

func (v Texts) override(bot, name string) (configs.Bot, texts.Own, error) {
	b, err := v.bot(bot)
	if err != nil {
		return b, texts.Own{}, err
	}
	o, ok := texts.Find(name)
	if !ok {
		return b, o, core.Errorf(core.NotFound, "there is no such text")
	}
	return b, o, nil
}

func (v Texts) SetText(ctx context.Context, bot, name, version, body string, by core.Actor) error {
	b, o, err := v.override(bot, name)
	if err != nil {
		return err
	}
	if body == texts.Default(name) {
		body = ""
	}
	detail := map[string]any{"text": name, "is": "default"}
	if body != "" {
		detail["is"] = "own"
		if err := o.Check(body, bot, RoomOn(b.Platform)); err != nil {
			return err
		}
	}
	return v.Change(ctx, bot, by, detail, func(c *configs.BotChange) {
		if c.Texts == nil {
			c.Texts = map[string]string{}
		}
		if c.Texts[name] = body; body == "" {
			delete(c.Texts, name)
		}
	}, func(*configs.Config) error { // the one that holds is still the one before
		if textVersion(v.Own(bot, name)) != version {
			return core.Errorf(core.Conflict, "this text was changed concurrently: reload it and try again")
		}
		return nil
	})
}
