package core

import (
	"cmp"
	"errors"
	"time"
)

// A MessageKind is what sort of update an Inbound is.
type MessageKind string

const (
	KindMessage  MessageKind = "message"  // something to answer
	KindCommand  MessageKind = "command"  // /name args, for this bot
	KindAnswer   MessageKind = "answer"   // a reply to an open ask; raised from message by the queue
	KindCallback MessageKind = "callback" // an inline button was pressed
	KindEdit     MessageKind = "edit"
	KindReaction MessageKind = "reaction"
	KindService  MessageKind = "service" // joined, left, pinned, renamed, bot blocked …
)

// A Standing is a change of a bot's own place among users.
type Standing string

const (
	StandingAdded     Standing = "added"     // to a group, or with Places to a server
	StandingRemoved   Standing = "removed"   // from them, or they are gone
	StandingPromoted  Standing = "promoted"  // it may see and do more in the group
	StandingMuted     Standing = "muted"     // it may stay in the group and not write
	StandingBlocked   Standing = "blocked"   // by the user of a direct chat
	StandingUnblocked Standing = "unblocked" // and let in again
)

// An Inbound is one update that has reached us, anyone who carried it.
type Inbound struct {
	UpdateID string `json:"update_id"` // unique per bot, from immutable facts; the queue drops a repeat
	Address
	Kind      MessageKind `json:"kind"`
	MessageID string      `json:"message_id,omitempty"` // the platform's id of the message
	Edit      string      `json:"edit,omitempty"`       // edit time for KindEdit, else ""
	From      Peer        `json:"from"`
	At        time.Time   `json:"at"` // the platform's time, or ours where it has none

	Text    string `json:"text,omitempty"`    // body or caption; for KindCommand the arguments
	Command string `json:"command,omitempty"` // lower case, without slash and @bot
	// Addressed: a direct message; in a group a mention of the bot by entity, a
	// reply to the bot, or a command that is not addressed to another bot.
	Addressed bool `json:"addressed,omitempty"`
	// Called is what Text begins with where that is a mention of the bot in a group.
	Called string `json:"called,omitempty"`
	// Unsupported names a kind of content that can't be handled ("poll"); such a
	// message is answered with one plain sentence.
	Unsupported string    `json:"unsupported,omitempty"`
	Album       string    `json:"album,omitempty"` // media_group_id: an album counts once for rate limits
	Long        bool      `json:"long,omitempty"`  // as long as the platform lets a message be: the rest may follow in another
	ReplyTo     string    `json:"reply_to,omitempty"`
	Slot        string    `json:"slot,omitempty"`       // a message id that is in the chat already, for the answer to replace
	Aside       string    `json:"aside,omitempty"`      // the answer is for its sender's eyes alone, with this as its parts' Aside
	Files       []File    `json:"files,omitempty"`      // what came with it
	PlaceName   string    `json:"place_name,omitempty"` // the group's title, hostile text
	Topic       string    `json:"topic,omitempty"`      // what the thread is called, with its tags; hostile text
	Quote       *Quote    `json:"quote,omitempty"`      // what the message is about: data, never instructions
	Callback    *Callback `json:"callback,omitempty"`
	// Again is the run of the message to answer again: its text and files are in the
	// conversation. Text has the text too.
	Again     string   `json:"again,omitempty"`
	Turn      *Options `json:"turn,omitempty"`      // what an API request asks for; nil from chats
	MovedTo   string   `json:"moved_to,omitempty"`  // the chat and place have this id from now on
	Standing  Standing `json:"standing,omitempty"`  // what became of the bot itself there; "" for nothing
	Places    []string `json:"places,omitempty"`    // further places that Standing holds for, as of a whole server
	Malformed string   `json:"malformed,omitempty"` // why the update could not be decoded: it becomes a dead row
}

// Where returns what users call the chat: the group's title, and the thread's.
func (in *Inbound) Where() string {
	if in.Topic == "" || in.PlaceName == "" {
		return in.PlaceName + in.Topic
	}
	return in.PlaceName + ": " + in.Topic
}

// Forwarded reports whether someone else wrote the whole message, and its sender only
// passed it on.
func (in *Inbound) Forwarded() bool { return in.Quote != nil && in.Quote.Forwarded }

// A File is something that came with a message, in the vault or still with
// the platform. What a user without access sends is never fetched.
type File struct {
	Path  string `json:"path,omitempty"`  // in the vault, with slashes; "" while it is only with the platform
	Name  string `json:"name"`            // as its sender called it, hostile text
	Type  string `json:"type"`            // as its sender declared it; not to be believed
	Size  int64  `json:"size"`            // bytes, as declared; 0 is unknown
	Ref   string `json:"ref,omitempty"`   // what its bot's connector fetches it by
	Voice bool   `json:"voice,omitempty"` // a voice message to the bot
	// Quoted: it is of the message that its sender refers to, and not theirs.
	Quoted bool `json:"quoted,omitempty"`
	// Refused explains why it was not kept, in a sentence for its sender that names
	// it; there is no Path then. Sender and model get it.
	Refused string `json:"refused,omitempty"`
}

// MaxQuote bounds the text of a Quote, in characters.
const MaxQuote = 2000

// A Quote is what a message refers to: the message that it replies to, or, if it was
// forwarded, its original author.
type Quote struct {
	Name      string `json:"name,omitempty"`      // hostile text; "" is not known
	Text      string `json:"text,omitempty"`      // hostile text; "" for a forwarded message, which has it itself
	Ours      bool   `json:"ours,omitempty"`      // the bot's own text
	Forwarded bool   `json:"forwarded,omitempty"` // the message's whole text is Name's
	Root      bool   `json:"root,omitempty"`      // the beginning of the message's thread: its title and first message
}

// UnknownName is written for a name that is not known.
const UnknownName = "someone whose name is not known"

// ForwardedLine returns a line, with its end, that states above a forwarded text whose it is. name
// is one line; "" is not known.
func ForwardedLine(name string) string {
	return "(forwarded: written by " + cmp.Or(name, UnknownName) + ", not by the sender)\n"
}

// A Callback is a pressed button: ID answers it on the platform, Data is what
// the button carried: "<ask id>:<option>".
type Callback struct {
	ID   string `json:"id"`
	Data string `json:"data"`
	// Fields is what was written into the form that a button with Form opened,
	// in the form's order; nil for a press.
	Fields []string `json:"fields,omitempty"`
	// Picked is the Data of all that were chosen together; nil for a press.
	Picked []string `json:"picked,omitempty"`
}

// Options are what an API request may ask for its one turn. A client may
// tighten trust, never raise it.
type Options struct {
	Session          string `json:"session,omitempty"`
	Run              string `json:"run,omitempty"` // fixed at Put for API turns
	Model            string `json:"model,omitempty"`
	Trust            Trust  `json:"trust_level,omitempty"` // ceiling; Stranger means none asked
	WorkingDirectory string `json:"working_directory,omitempty"`
	SystemPrompt     string `json:"system_prompt,omitempty"`
	User             int64  `json:"user,omitempty"`          // the key's or admin session's user
	Key              string `json:"key,omitempty"`           // id of the API key, "" for an admin session
	Respond          bool   `json:"respond_async,omitempty"` // run again after a crash (Prefer: respond-async)
	IdempotencyKey   string `json:"idempotency_key,omitempty"`
	Alone            bool   `json:"alone,omitempty"` // no one watches the stream: what would be asked is refused

	// What a session begins with; one that exists keeps its own.
	Agent         string `json:"agent,omitempty"`           // who answers; "" is the default agent
	Module        string `json:"module,omitempty"`          // "" is chat
	Source        string `json:"source,omitempty"`          // where it begins; "" is the API
	Workspace     string `json:"workspace,omitempty"`       // slug: its settings, and its trust as a ceiling
	ContinuedFrom string `json:"continued_from,omitempty"`  // id of a session of the same person that it goes on from
	Initial       string `json:"initial_context,omitempty"` // is in front of the first message

	Contexts []string `json:"contexts,omitempty"` // directories and files of the vault that the session is about from now on

	Before []Said  `json:"before,omitempty"` // what was written before the message, by a client that keeps the conversation itself
	Media  []Media `json:"media,omitempty"`  // what came with the message and lies in no file

	Temperature *float64 `json:"temperature,omitempty"` // 0 to 2; nil is the model's own
	MaxTokens   int      `json:"max_tokens,omitempty"`  // of each answer of the model, below the setting; 0 is the setting
	Stop        []string `json:"stop,omitempty"`        // the answer ends before the first of these
}

// A Said is a message of a conversation stored by the client.
type Said struct {
	Role  string  `json:"role"` // user or assistant
	Text  string  `json:"text,omitempty"`
	Media []Media `json:"media,omitempty"`
}

// A Reply is what goes to one chat: parts in order, stored in the outbox.
type Reply struct {
	Address
	// Key names the reply: "run:<id>", "pair:<request>:<n>", "ask:<id>",
	// "notice:<…>", "send:<id>". (Key, ordinal) is unique: a second reply
	// under the same key is refused by the database.
	Key   string
	First int // ordinal of Parts[0]
	// Replaces is the platform's id of the message that Parts[0] edits, or
	// "@<key>/<ordinal>": the message that outbox row became. "" sends again.
	Replaces string
	Parts    []Part
}

// A Part is one platform message, already within the platform's limits: text
// with styled spans instead of markup, so that no parse error can exist.
type Part struct {
	Text    string     `json:"text"`
	Spans   []Span     `json:"spans,omitempty"`
	Buttons [][]Button `json:"buttons,omitempty"`
	ReplyTo string     `json:"reply_to,omitempty"` // quote this message (groups)
	// Aside is by what the connector shows the part to one user of the chat
	// alone; "" is for everyone. It is with the part, so that no restart
	// makes a private answer public.
	Aside string `json:"aside,omitempty"`
	// File makes the part a file of the vault, shown as a picture where it is
	// one; Text is what is with it. It is read when it is sent.
	File *File `json:"file,omitempty"`
}

// A Span styles Length UTF-16 units of Part.Text from Offset on.
type Span struct {
	Style    Style  `json:"style"`
	Offset   int    `json:"offset"`
	Length   int    `json:"length"`
	URL      string `json:"url,omitempty"`      // StyleLink
	Language string `json:"language,omitempty"` // StylePre
}

// A Style is one of a closed list; every connector knows each.
type Style string

const (
	StyleBold    Style = "bold"
	StyleItalic  Style = "italic"
	StyleStrike  Style = "strike"
	StyleCode    Style = "code"
	StylePre     Style = "pre"
	StyleLink    Style = "link"
	StyleQuote   Style = "quote"
	StyleSpoiler Style = "spoiler"
)

// A Button is shown under a part; Data comes back in a Callback (at most 64 bytes).
type Button struct {
	Label string `json:"label"`
	Data  string `json:"data"`
	// Form: pressing it opens input fields, and their values are returned with
	// Data. A platform without forms omits the button.
	Form bool `json:"form,omitempty"`
	// Pick makes it one of several that may be chosen together. Where the platform
	// has menus of which several entries are taken at once, they are its entries
	// and come back in Callback.Picked; elsewhere each press changes one, which
	// Picked shows, and the one with PickDone ends the choosing.
	Pick   Pick `json:"pick,omitempty"`
	Picked bool `json:"picked,omitempty"`
}

// A Pick is what a button is in a choice of several.
type Pick string

// Picks. The zero value is a button on its own.
const (
	PickEntry Pick = "entry"
	PickDone  Pick = "done"
)

// An Outgoing is one outbox row on its way to a platform.
type Outgoing struct {
	Address
	Part
	Seq      int64  // the outbox row; a connector's nonce may be made from it
	Answer   string // what its parts are parts of: the same for each of them
	Replaces string // the platform's message id to edit, or to delete by an empty part; "" sends again
	// Repeat asks for a visible mark: an earlier try may already have arrived.
	Repeat bool
	// Flight, unless it is nil, is notified of how far the request gets.
	Flight Flight
}

// Deletes reports whether o deletes the message that it replaces.
func (o *Outgoing) Deletes() bool { return o.Replaces != "" && o.Empty() }

// Empty reports whether o has nothing to show.
func (o *Outgoing) Empty() bool { return o.Text == "" && o.File == nil }

// A Flight is notified of how far a send gets. It is safe for concurrent use.
type Flight interface {
	// Writing is called before the first byte of the request may leave. After an error
	// none may leave; it returns one when the send has ended.
	Writing() error
	// Written is called when the operating system has the whole request.
	Written()
}

// A Delivery is the outcome of a send.
type Delivery struct {
	Outcome   Outcome
	MessageID string        // for Sent: the platform's id of the message
	After     time.Duration // for RetryAfter
	Reason    string        // why, for users; holds no token
	MovedTo   string        // for Refused: the chat's new id; the part can be sent there
	Closed    bool          // for Refused: the chat takes nothing from the bot until it is let in again
	Safe      bool          // for Unknown: sending again cannot show it twice (an edit, a nonce)
	Declined  bool          // for NotSent: an answer said so, and it may be this message that is not taken
	All       bool          // for RetryAfter: the bot must write to no chat until then
	Late      bool          // for Refused: one user alone was to see it, and the platform shows them no more
}

// ErrInDoubt means that a message which no one can find again may are in a
// chat: the platform took it and did not answer.
var ErrInDoubt = errors.New("it may have arrived")

// An Outcome is how a send ended.
type Outcome uint8

const (
	Sent       Outcome = iota
	NotSent            // never reached the platform: send again
	RetryAfter         // the platform asks to wait Delivery.After: send again then
	Refused            // the platform will never take it: failed
	Unknown            // written, no answer: may or may not have arrived
)

// A Cursor is a place in a platform's stream; the queue stores it in the
// transaction that stores the updates before it.
type Cursor struct {
	Name  string // "<platform>:<the bot's own id there>"
	Value string // the connector's own form
}
