package telegramtest

import (
	"encoding/json"
	"fmt"
)

// maxMarkup bounds an inline keyboard in bytes of its JSON; the platform states
// only that it is bounded ("reply markup is too long").
const maxMarkup = 10 << 10

// parseMarkup reads reply_markup. Only inline keyboards change what the chat
// shows; the other kinds are accepted and ignored ([api] sendMessage).
func parseMarkup(raw string) (*wireMarkup, *apiError) {
	if raw == "" {
		return nil, nil
	}
	var value any
	if json.Unmarshal([]byte(raw), &value) != nil {
		return nil, bad("can't parse reply keyboard markup JSON object") // [server] get_reply_markup
	}
	object, ok := value.(map[string]any)
	if !ok {
		return nil, bad("object expected as reply markup")
	}
	field, ok := object["inline_keyboard"]
	if !ok {
		return nil, nil
	}
	if len(raw) > maxMarkup {
		return nil, bad("reply markup is too long") // [server] REPLY_MARKUP_TOO_LONG
	}
	rows, ok := field.([]any)
	if !ok {
		return nil, bad(`Field "inline_keyboard" must be of type Array`)
	}
	m := &wireMarkup{}
	for _, r := range rows {
		row, err := parseRow(r)
		if err != nil {
			return nil, err
		}
		if len(row) > 0 {
			m.Rows = append(m.Rows, row)
		}
	}
	if len(m.Rows) == 0 {
		return nil, nil
	}
	return m, nil
}

func parseRow(value any) ([]Button, *apiError) {
	items, ok := value.([]any)
	if !ok {
		return nil, bad(`field "inline_keyboard" of the InlineKeyboardMarkup must be an Array of Arrays`)
	}
	row := make([]Button, 0, len(items))
	for _, item := range items {
		b, err := parseButton(item)
		if err != nil {
			return nil, err
		}
		row = append(row, b)
	}
	return row, nil
}

// parseButton follows [server] get_inline_keyboard_button and [td] ReplyMarkup.cpp;
// callback_data has 1-64 bytes ([api] InlineKeyboardButton), which the
// platform enforces with BUTTON_DATA_INVALID.
func parseButton(value any) (Button, *apiError) {
	object, ok := value.(map[string]any)
	if !ok {
		return Button{}, bad("can't parse inline keyboard button: InlineKeyboardButton must be an Object")
	}
	text, ok := object["text"].(string)
	if !ok {
		return Button{}, bad(`can't parse inline keyboard button: Can't find field "text"`)
	}
	b := Button{Text: text}
	b.URL, _ = object["url"].(string)
	b.CallbackData, _ = object["callback_data"].(string)
	_, copies := object["copy_text"]
	switch {
	case b.URL != "":
		b.CallbackData = ""
		if why := checkLink(b.URL); why != "" {
			return b, bad(fmt.Sprintf("inline keyboard button URL '%s' is invalid: %s", b.URL, why))
		}
	case b.CallbackData == "" && !copies:
		return b, bad("can't parse inline keyboard button: Text buttons are unallowed in the inline keyboard")
	}
	if text == "" {
		return b, bad("inline keyboard button text must be non-empty")
	}
	if len(b.CallbackData) > 64 {
		return b, bad("BUTTON_DATA_INVALID")
	}
	return b, nil
}

// A reply names the message that a message answers ([api] ReplyParameters).
type reply struct {
	message int
	quote   string
	lenient bool // allow_sending_without_reply
}

// parseReply reads reply_parameters, or the older reply_to_message_id
// ([server] get_reply_parameters).
func parseReply(p params) (reply, *apiError) {
	raw, ok := p["reply_parameters"]
	if !ok {
		return reply{message: int(p.id("reply_to_message_id")), lenient: p.boolean("allow_sending_without_reply")}, nil
	}
	if raw == "" {
		return reply{}, nil
	}
	var fields map[string]json.RawMessage
	if !json.Valid([]byte(raw)) {
		return reply{}, bad("can't parse reply parameters JSON object")
	}
	if json.Unmarshal([]byte(raw), &fields) != nil || fields == nil {
		return reply{}, bad("object expected as reply parameters")
	}
	if len(fields) == 0 {
		return reply{}, nil
	}
	var v struct {
		MessageID *int   `json:"message_id"`
		Lenient   bool   `json:"allow_sending_without_reply"`
		Quote     string `json:"quote"`
	}
	if json.Unmarshal([]byte(raw), &v) != nil {
		return reply{}, bad(`field "message_id" must be of type Number`)
	}
	if v.MessageID == nil {
		return reply{}, bad(`can't find field "message_id"`)
	}
	return reply{message: *v.MessageID, quote: v.Quote, lenient: v.Lenient}, nil
}
