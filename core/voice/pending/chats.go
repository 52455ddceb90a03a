package pending

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"gatehouse/core"
	"gatehouse/core/ask"
	"gatehouse/core/store"
	"gatehouse/core/texts"
)

const (
	keepInChat = 7 * 24 * time.Hour // until a voice message is given up
	maxShown   = 1200               // bytes of a text that the message repeats
	perPrune   = 100                // voice messages that are given up at a time
)

// Chats are where the texts of voice messages go.
type Chats struct {
	// May reports whether an account may still talk to the bot there.
	May func(ctx context.Context, tx *store.Tx, to core.Address, from core.Peer) (bool, error)
	// Gone reports whether a recording is not in the vault any more.
	Gone func(path string) bool
	// Post stores a message to a chat; core.Conflict if its key was used.
	Post func(ctx context.Context, tx *store.Tx, r core.Reply) error
	// Render returns Markdown as messages of a chat.
	Render func(to core.Address, markdown string) []core.Part
	// Choose opens a choice of a user; core.Busy if too many wait.
	Choose func(ctx context.Context, tx *store.Tx, a ask.Ask) error
}

// origin is where a voice message came from; its zero value is a recording of a journal.
type origin struct {
	Bot      string `db:"bot"`
	Chat     string `db:"chat"`
	Thread   string `db:"thread"`
	Place    string `db:"place"`
	Message  string `db:"message"`
	Platform string `db:"platform"`
	Sender   string `db:"sender"`
}

func (o origin) address() core.Address {
	return core.Address{Bot: o.Bot, Chat: o.Chat, Thread: o.Thread, Place: o.Place}
}

func (o origin) peer() core.Peer { return core.Peer{Platform: o.Platform, ID: o.Sender} }

// Room reports whether n further voice messages of a user can wait. It reports false if that
// cannot be read.
func (s *Store) Room(ctx context.Context, user int64, n int) bool {
	var waiting int
	if err := s.o.DB.Get(ctx, &waiting, `SELECT count(*) FROM voice_pending WHERE user_id = $1`, user); err != nil {
		s.o.Log.WarnContext(ctx, "whether a voice message can wait for its text", "err", err)
		return false
	}
	return waiting+n <= maxOfUser
}

// AddMessage has the voice message f, which came with in, transcribed later: its text is sent
// to its chat, with a button by which its sender has it answered. It is for one that there was
// Room for: its sender was promised the text, so recordings that were added since do not matter.
func (s *Store) AddMessage(ctx context.Context, tx *store.Tx, user int64, in *core.Inbound, f core.File) error {
	now := s.o.Clock.Now()
	_, err := tx.Exec(ctx, `INSERT INTO voice_pending (user_id, entry, path, due, created, bot, chat, thread, place, message, platform, sender)
		VALUES ($1, '', $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
		ON CONFLICT (entry, path) DO NOTHING`,
		user, f.Path, core.Stamp(now.Add(firstPause)), core.Stamp(now), in.Bot, in.Chat, in.Thread, in.Place, in.MessageID, in.From.Platform, in.From.ID)
	if err != nil {
		return fmt.Errorf("note a voice message for later: %w", err)
	}
	return nil
}

// message transcribes a voice message of a chat and sends its text there, or why it has none;
// false if it has none, the recording is gone, or its sender has no access any more.
func (s *Store) message(ctx context.Context, w row) (done bool, err error) {
	may := false
	err = s.o.DB.Tx(ctx, func(tx *store.Tx) (err error) {
		may, err = s.o.Chats.May(ctx, tx, w.address(), w.peer())
		return err
	})
	if err != nil || !may || s.o.Chats.Gone(w.Path) {
		return false, err
	}
	text, lasting, err := s.hear(ctx, w, w.Path)
	switch {
	case lasting != nil:
		s.o.Log.WarnContext(ctx, "a voice message is not transcribed", "err", err)
		return false, s.refuse(ctx, w, texts.Text("voice_service", texts.With{"Code": lasting.Code, "Waits": !lasting.Passes()}))
	case err != nil:
		s.o.Log.WarnContext(ctx, "a voice message could not be transcribed again", "tries", w.Tries+1, "err", err)
		return false, err
	case text == "":
		return false, s.refuse(ctx, w, texts.Text("voice_silent"))
	}
	return true, s.o.DB.Tx(ctx, func(tx *store.Tx) error { return s.send(ctx, tx, w, text) })
}

// refuse sends why a voice message has no text.
func (s *Store) refuse(ctx context.Context, w row, why string) error {
	return s.o.DB.Tx(ctx, func(tx *store.Tx) error {
		return s.reply(ctx, tx, w, texts.Text("voice_no_text", texts.With{"Why": why, "Path": texts.Escape(w.Path)}), nil)
	})
}

// send sends the text of a voice message with the button.
func (s *Store) send(ctx context.Context, tx *store.Tx, w row, text string) error {
	shown := core.CutRunes(strings.Join(strings.Fields(core.Visible(text)), " "), maxShown)
	markdown := texts.Text("voice_text", texts.With{"Text": texts.Escape(shown)})
	payload, err := json.Marshal(ask.Said{Text: text, Key: w.key(), Shown: markdown})
	if err != nil {
		return err
	}
	return s.reply(ctx, tx, w, markdown, &ask.Ask{ID: ask.IDOf(w.key()), Kind: ask.KindChoice, Bot: w.Bot, Chat: w.Chat, User: w.User,
		Payload: string(payload), ExpiresAt: s.o.Clock.Now().Add(keepInChat)})
}

// key names the reply to a voice message.
func (w row) key() string { return "voice:" + w.Path }

// reply sends Markdown in reply to a voice message, with a button for the choice unless that is
// nil, and removes its row. It sends nothing if the row is gone, as when its user was forgotten,
// or the recording is, as when its conversation was deleted.
func (s *Store) reply(ctx context.Context, tx *store.Tx, w row, markdown string, choice *ask.Ask) error {
	n, err := w.remove(ctx, tx)
	if err != nil || n == 0 {
		return err
	}
	may, err := s.o.Chats.May(ctx, tx, w.address(), w.peer())
	if err != nil || !may || s.o.Chats.Gone(w.Path) {
		return err
	}
	parts := s.o.Chats.Render(w.address(), markdown)
	if len(parts) == 0 {
		return nil
	}
	parts[0].ReplyTo = w.Message
	if choice != nil {
		err := s.o.Chats.Choose(ctx, tx, *choice)
		if err != nil && core.KindOf(err) != core.Busy { // the text can be sent as a message too
			return err
		}
		if err == nil {
			parts[len(parts)-1].Buttons = [][]core.Button{{{Label: texts.Text("button_answer_voice"), Data: choice.Data(ask.OptionGoOn)}}}
		}
	}
	err = s.o.Chats.Post(ctx, tx, core.Reply{Address: w.address(), Key: w.key(), Parts: parts})
	if core.KindOf(err) == core.Conflict {
		return nil
	}
	return err
}

// tooLong gives up a voice message that has waited for long.
func (s *Store) tooLong(ctx context.Context, w row) error {
	return s.refuse(ctx, w, texts.Text("voice_given_up", texts.With{"N": int(keepInChat.Hours() / 24)}))
}

// giveUp removes voice messages that have waited for long, and notifies their senders. An
// error about one is returned after the others were given up.
func (s *Store) giveUp(ctx context.Context) (n int, failed error) {
	before := core.Stamp(s.o.Clock.Now().Add(-keepInChat))
	for last := int64(0); ; {
		var rows []row
		if err := s.o.DB.Select(ctx, &rows, selectRows+`id > $1 AND created < $2 AND bot <> '' ORDER BY id LIMIT $3`, last, before, perPrune); err != nil {
			return n, err
		}
		for _, w := range rows {
			last = w.ID
			switch err := s.tooLong(ctx, w); {
			case err == nil:
				n++
			case failed == nil:
				failed = err
			}
		}
		if len(rows) < perPrune {
			return n, failed
		}
	}
}

// Move follows a chat to its new id.
func (s *Store) Move(ctx context.Context, tx *store.Tx, bot, from, to string) error {
	_, err := tx.Exec(ctx, `UPDATE voice_pending SET
			chat = CASE WHEN chat = $2 THEN $3 ELSE chat END, place = CASE WHEN place = $2 THEN $3 ELSE place END, message = ''
		WHERE bot = $1 AND (chat = $2 OR place = $2)`, bot, from, to)
	return err
}
