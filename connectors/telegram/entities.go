package telegram

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	tgbotapi "github.com/go-telegram-bot-api/telegram-bot-api/v5"

	"gatehouse/core"
)

// A target is an Address taken apart.
type target struct {
	chat, thread int64
}

// private reports whether this is a chat with one user: their numbers are
// positive, those of groups and channels negative.
func (t target) private() bool { return t.chat > 0 }

func parseTarget(a core.Address) (target, error) {
	id, thread, inThread := strings.Cut(a.Chat, "/")
	var t target
	var err error
	if t.chat, err = strconv.ParseInt(id, 10, 64); err != nil || t.chat == 0 {
		return t, errAddress
	}
	if inThread {
		if t.thread, err = strconv.ParseInt(thread, 10, 64); err != nil || t.thread <= 0 {
			return t, errAddress
		}
	}
	return t, nil
}

// params returns those that every method with a place takes.
func (t target) params() tgbotapi.Params {
	p := make(tgbotapi.Params, 8)
	p["chat_id"] = strconv.FormatInt(t.chat, 10)
	if t.thread != 0 {
		p["message_thread_id"] = strconv.FormatInt(t.thread, 10)
	}
	return p
}

// addText adds a part's text and styles to p, as entities and never with a parse_mode,
// so that the platform has nothing to parse.
func addText(p tgbotapi.Params, part core.Part) {
	p["text"] = part.Text
	if e := entities(part.Spans); e != "" {
		p["entities"] = e
	}
}

// addButtons adds an inline keyboard to p.
func addButtons(p tgbotapi.Params, rows [][]core.Button) error {
	if len(rows) == 0 {
		return nil
	}
	type button struct {
		Text string `json:"text"`
		Data string `json:"callback_data"`
	}
	var markup struct {
		Rows [][]button `json:"inline_keyboard"`
	}
	for _, row := range rows {
		out := make([]button, 0, len(row))
		for _, b := range row {
			if b.Form { // there are none: users write a message
				continue
			}
			if len(b.Data) == 0 || len(b.Data) > 64 { // InlineKeyboardButton.callback_data: 1-64 bytes
				return fmt.Errorf("the data of button %q has %d bytes, 1 to 64 are possible", b.Label, len(b.Data))
			}
			out = append(out, button{marked(b), b.Data})
		}
		if len(out) > 0 {
			markup.Rows = append(markup.Rows, out)
		}
	}
	if len(markup.Rows) == 0 {
		return nil
	}
	raw, err := json.Marshal(markup)
	p["reply_markup"] = string(raw)
	return err
}

// marked returns a button's label, with a box before one of several that may be chosen.
func marked(b core.Button) string {
	switch {
	case b.Pick != core.PickEntry:
		return b.Label
	case b.Picked:
		return "☑ " + b.Label
	}
	return "☐ " + b.Label
}

// entityTypes maps styles to the platform's names (MessageEntity.type).
var entityTypes = map[core.Style]string{
	core.StyleBold: "bold", core.StyleItalic: "italic", core.StyleStrike: "strikethrough", core.StyleCode: "code",
	core.StylePre: "pre", core.StyleLink: "text_link", core.StyleQuote: "blockquote", core.StyleSpoiler: "spoiler",
}

// entities returns spans as the platform's JSON; "" for none.
func entities(spans []core.Span) string {
	if len(spans) == 0 {
		return ""
	}
	b := make([]byte, 0, 48*len(spans))
	for _, s := range spans {
		kind, ok := entityTypes[s.Style]
		if !ok {
			continue
		}
		sep := byte(',')
		if len(b) == 0 {
			sep = '['
		}
		b = append(b, sep)
		b = append(b, `{"type":"`...)
		b = append(b, kind...)
		b = append(b, `","offset":`...)
		b = strconv.AppendInt(b, int64(s.Offset), 10)
		b = append(b, `,"length":`...)
		b = strconv.AppendInt(b, int64(s.Length), 10)
		if s.Style == core.StyleLink {
			b = appendString(b, `,"url":`, s.URL)
		}
		if s.Style == core.StylePre && s.Language != "" {
			b = appendString(b, `,"language":`, s.Language)
		}
		b = append(b, '}')
	}
	if len(b) == 0 {
		return ""
	}
	return string(append(b, ']'))
}

func appendString(b []byte, name, value string) []byte {
	quoted, err := json.Marshal(value)
	if err != nil { // a string always has JSON
		return b
	}
	return append(append(b, name...), quoted...)
}
