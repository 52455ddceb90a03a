package phones

import (
	"context"
	"iter"
	"time"
)

// Bounds of what is shown of a platform.
const (
	maxPhones = 12  // users
	maxChats  = 24  // group chats, channels and threads
	maxShown  = 100 // messages sent for each chat when the page opens
	maxName   = 256 // bytes of a new person's name
)

// A Platform is what the page needs of a simulator, in the page's own words.
// Ids are strings: Discord's do not fit a number of JavaScript. Its methods may
// be called from several goroutines.
type Platform interface {
	// World is all that there is to see now.
	World() World
	// Changes yields what becomes visible after the call. It ends with ctx, when
	// the simulator closes, and when the reader fell behind: check World again.
	Changes(ctx context.Context) iter.Seq[Change]
	// Act does what a user does. Errors are core's and fit to be shown.
	Act(Action) error
	// Add makes a user and lets them into what is shared. Invalid: no name, a
	// long one, or enough users.
	Add(name string) (Person, error)
}

// A World is what the page begins with.
type World struct {
	Platform string   `json:"platform"` // "telegram", "discord"
	Name     string   `json:"name"`     // as users write it
	Place    string   `json:"place"`    // the group or server that everyone is in
	Bot      Person   `json:"bot"`
	Limit    int      `json:"limit"` // characters in the longest message that the app sends
	Menu     []string `json:"menu"`  // the bot's commands, with a slash
	People   []Person `json:"people"`
	Chats    []Chat   `json:"chats"`
}

// A Person is someone with a window of their own, or the bot. Names are
// hostile text.
type Person struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	Username string `json:"username,omitempty"` // without an at sign
	Note     string `json:"note,omitempty"`
	Bot      bool   `json:"bot,omitempty"`
	Owner    bool   `json:"owner,omitempty"` // meant to own the bots: offered the claim code
}

// Kinds of chats.
const (
	Private = "private" // a user and the bot
	Shared  = "group"   // everyone
	Thread  = "thread"  // everyone, below another one
)

// A Chat is one conversation with what is in it.
type Chat struct {
	ID       string    `json:"id"`
	Kind     string    `json:"kind"`
	Title    string    `json:"title"`
	Person   string    `json:"person,omitempty"` // of a private one
	Messages []Message `json:"messages"`
	Drafts   []Draft   `json:"drafts,omitempty"`
	Typing   []Typing  `json:"typing,omitempty"`
}

// A Message is what users see of one.
type Message struct {
	ID        string     `json:"id"`
	From      Person     `json:"from"`
	At        time.Time  `json:"at"`
	Edited    bool       `json:"edited,omitempty"`
	Text      string     `json:"text,omitempty"`
	Styles    []Style    `json:"styles,omitempty"`
	Buttons   [][]Button `json:"buttons,omitempty"`
	Answers   *Answered  `json:"answers,omitempty"`
	File      string     `json:"file,omitempty"`    // kind and name of an attachment
	Forward   string     `json:"forward,omitempty"` // who wrote it first
	Service   string     `json:"service,omitempty"` // what happened, instead of a text
	Reactions []string   `json:"reactions,omitempty"`
	OnlyFor   string     `json:"only_for,omitempty"` // the one user who sees it
}

// Answered is the message that another one answers.
type Answered struct {
	From string `json:"from"`
	Text string `json:"text"`
}

// A Style holds for Length UTF-16 units of a text from Offset on. Kinds are
// Telegram's entity types, and "heading" and "subtext".
type Style struct {
	Kind     string `json:"kind"`
	Offset   int    `json:"offset"`
	Length   int    `json:"length"`
	URL      string `json:"url,omitempty"`
	Language string `json:"language,omitempty"`
}

// A Button is under a message; it has Data to press or a URL to open.
type Button struct {
	Text     string `json:"text"`
	Data     string `json:"data,omitempty"`
	URL      string `json:"url,omitempty"`
	Look     string `json:"look,omitempty"` // primary, success, danger; else plain
	Disabled bool   `json:"disabled,omitempty"`
	Menu     []Item `json:"menu,omitempty"` // a menu, of which one is chosen; Text is in it before
}

// An Item is one entry of a menu.
type Item struct {
	Text  string `json:"text"`
	Value string `json:"value"`
}

// A Form is what a pressed button has opened for a user.
type Form struct {
	ID     string  `json:"id"`
	Title  string  `json:"title"`
	Fields []Field `json:"fields"`
}

// A Field is one input of a Form.
type Field struct {
	ID       string `json:"id"`
	Label    string `json:"label"`
	About    string `json:"about,omitempty"`
	Hint     string `json:"hint,omitempty"`
	Value    string `json:"value,omitempty"` // what is in it at first
	Lines    bool   `json:"lines,omitempty"`
	Required bool   `json:"required,omitempty"`
	Most     int    `json:"most"`
}

// A Draft is a message that the bot is still writing.
type Draft struct {
	ID     string    `json:"id"`
	Text   string    `json:"text"`
	Styles []Style   `json:"styles,omitempty"`
	Until  time.Time `json:"until"`
}

// Typing is someone who writes until then; the zero time is its end.
type Typing struct {
	By    string    `json:"by"` // a name
	ID    string    `json:"id"`
	Until time.Time `json:"until,omitzero"`
}

// Kinds of changes.
const (
	ChangeMessage = "message" // Message is new
	ChangeEdit    = "edit"    // Message is other than before
	ChangeDelete  = "delete"  // the message ID is gone
	ChangeDraft   = "draft"   // Draft is new or longer; nil: there is none any more
	ChangeTyping  = "typing"
	ChangeNote    = "note"   // the app shows Person the Text
	ChangeForm    = "form"   // Form opens for Person
	ChangePerson  = "person" // Person is new, with Chats, or renamed
	ChangeChat    = "chat"   // Chats are new
)

// A Change is one thing that users can see.
type Change struct {
	Platform string   `json:"platform"`
	Kind     string   `json:"kind"`
	Chat     string   `json:"chat,omitempty"`
	Message  *Message `json:"message,omitempty"`
	ID       string   `json:"id,omitempty"`
	Draft    *Draft   `json:"draft,omitempty"`
	Typing   *Typing  `json:"typing,omitempty"`
	Person   *Person  `json:"person,omitempty"`
	Text     string   `json:"text,omitempty"`
	Form     *Form    `json:"form,omitempty"`
	Chats    []Chat   `json:"chats,omitempty"`
}

// An Action is what a visitor does as a user: write Text, with Message press
// the button there that carries Data, or choose Value in that menu, or with Form
// send what they wrote into its Fields.
type Action struct {
	Platform string            `json:"platform"`
	From     string            `json:"from"`
	Chat     string            `json:"chat"` // "" is the private one with the bot
	Text     string            `json:"text"`
	ReplyTo  string            `json:"reply_to"`
	Message  string            `json:"message"`
	Data     string            `json:"data"`
	Value    string            `json:"value"`
	Form     string            `json:"form"`
	Fields   map[string]string `json:"fields"`
}

// last returns the newest of a chat's messages.
func last[M any](all []M) []M { return all[max(len(all)-maxShown, 0):] }

// shown returns a simulator's changes as the page shows them; what turn states false
// to it does not show. They are followed from now on, not from when they are read.
func shown[C any](changes <-chan C, turn func(C) (Change, bool)) iter.Seq[Change] {
	return func(yield func(Change) bool) {
		for c := range changes {
			if out, ok := turn(c); ok && !yield(out) {
				return
			}
		}
	}
}
