package telegramtest

import "encoding/json"

// An Account is a user or a bot as the platform shows it ([api] User).
// Names are hostile text.
type Account struct {
	ID           int64  `json:"id"`
	IsBot        bool   `json:"is_bot"`
	FirstName    string `json:"first_name"`
	LastName     string `json:"last_name,omitempty"`
	Username     string `json:"username,omitempty"`
	LanguageCode string `json:"language_code,omitempty"`
}

// Name returns the account's name as chats show it.
func (a Account) Name() string {
	if a.LastName == "" {
		return a.FirstName
	}
	return a.FirstName + " " + a.LastName
}

// An Entity styles Length UTF-16 code units of a text from Offset on
// ([api] MessageEntity).
type Entity struct {
	Type          string   `json:"type"`
	Offset        int      `json:"offset"`
	Length        int      `json:"length"`
	URL           string   `json:"url,omitempty"`
	User          *Account `json:"user,omitempty"`
	Language      string   `json:"language,omitempty"`
	CustomEmojiID string   `json:"custom_emoji_id,omitempty"`
}

// A Button is one inline button ([api] InlineKeyboardButton).
type Button struct {
	Text         string `json:"text"`
	CallbackData string `json:"callback_data,omitempty"`
	URL          string `json:"url,omitempty"`
}

// A Command is one entry of a bot's menu ([api] BotCommand).
type Command struct {
	Command     string `json:"command"`
	Description string `json:"description"`
}

// The wire types below are what a bot receives. Field names are the platform's.

type wireChat struct {
	ID        int64  `json:"id"`
	Type      string `json:"type"`
	Title     string `json:"title,omitempty"`
	Username  string `json:"username,omitempty"`
	FirstName string `json:"first_name,omitempty"`
	LastName  string `json:"last_name,omitempty"`
	IsForum   bool   `json:"is_forum,omitempty"`
}

type wireFile struct {
	FileID   string `json:"file_id"`
	UniqueID string `json:"file_unique_id"`
	Size     int64  `json:"file_size,omitempty"`
	Name     string `json:"file_name,omitempty"`
	MIME     string `json:"mime_type,omitempty"`
	Path     string `json:"file_path,omitempty"`
	Width    int    `json:"width,omitempty"`
	Height   int    `json:"height,omitempty"`
	Duration *int   `json:"duration,omitempty"`
}

type wireMarkup struct {
	Rows [][]Button `json:"inline_keyboard"`
}

type wireQuote struct {
	Text     string `json:"text"`
	Position int    `json:"position"`
	IsManual bool   `json:"is_manual,omitempty"`
}

type wireOrigin struct {
	Type string   `json:"type"` // "user"
	Date int64    `json:"date"`
	User *Account `json:"sender_user,omitempty"`
}

type wireTopic struct {
	Name      string `json:"name"`
	IconColor int    `json:"icon_color"`
}

type wireMessage struct {
	MessageID       int          `json:"message_id"`
	From            *Account     `json:"from,omitempty"`
	SenderChat      *wireChat    `json:"sender_chat,omitempty"`
	Chat            wireChat     `json:"chat"`
	Date            int64        `json:"date"`
	EditDate        int64        `json:"edit_date,omitempty"`
	ThreadID        int          `json:"message_thread_id,omitempty"`
	IsTopic         bool         `json:"is_topic_message,omitempty"`
	ForwardOrigin   *wireOrigin  `json:"forward_origin,omitempty"`
	ForwardFrom     *Account     `json:"forward_from,omitempty"`
	ForwardDate     int64        `json:"forward_date,omitempty"`
	ReplyTo         *wireMessage `json:"reply_to_message,omitempty"`
	Quote           *wireQuote   `json:"quote,omitempty"`
	MediaGroupID    string       `json:"media_group_id,omitempty"`
	Text            string       `json:"text,omitempty"`
	Entities        []Entity     `json:"entities,omitempty"`
	Photo           []wireFile   `json:"photo,omitempty"`
	Document        *wireFile    `json:"document,omitempty"`
	Voice           *wireFile    `json:"voice,omitempty"`
	VideoNote       *wireFile    `json:"video_note,omitempty"`
	Audio           *wireFile    `json:"audio,omitempty"`
	Video           *wireFile    `json:"video,omitempty"`
	Caption         string       `json:"caption,omitempty"`
	CaptionEntities []Entity     `json:"caption_entities,omitempty"`
	NewMembers      []Account    `json:"new_chat_members,omitempty"`
	LeftMember      *Account     `json:"left_chat_member,omitempty"`
	TopicCreated    *wireTopic   `json:"forum_topic_created,omitempty"`
	MigrateTo       int64        `json:"migrate_to_chat_id,omitempty"`
	MigrateFrom     int64        `json:"migrate_from_chat_id,omitempty"`
	ReplyMarkup     *wireMarkup  `json:"reply_markup,omitempty"`

	extra map[string]json.RawMessage // further fields, spliced in
}

// MarshalJSON writes the fields and then those of extra.
func (m *wireMessage) MarshalJSON() ([]byte, error) {
	type plain wireMessage
	b, err := json.Marshal((*plain)(m))
	if err != nil || len(m.extra) == 0 {
		return b, err
	}
	more, err := json.Marshal(m.extra)
	if err != nil {
		return nil, err
	}
	b[len(b)-1] = ','
	return append(b, more[1:]...), nil
}
