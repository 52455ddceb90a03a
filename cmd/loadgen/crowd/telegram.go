package crowd

import (
	"strconv"
	"time"

	"gatehouse/connectors/telegram/telegramtest"
)

// Telegram creates that many users on sim, each in a private chat with its bot.
func Telegram(sim *telegramtest.Server, people int) (*Platform, error) {
	p := &Platform{
		simulator: telegram{sim}, Name: "telegram", URL: sim.URL(), Token: sim.Token(), Handler: sim, Count: sim.Count, Close: sim.Close,
		Methods: []string{"getUpdates", "sendMessage", "editMessageText", "sendChatAction", "sendMessageDraft"},
	}
	for i := range people {
		u, err := sim.AddUser(telegramtest.Account{FirstName: "Person " + strconv.Itoa(i+1)})
		if err != nil {
			return nil, err
		}
		p.Chats = append(p.Chats, Chat{ID: strconv.FormatInt(u.ID(), 10), say: []func(string) (Message, error){func(text string) (Message, error) {
			m, err := u.Post(u.DM(), telegramtest.Outgoing{Text: text})
			return telegramMessage(m), err
		}}})
	}
	return p, nil
}

func telegramMessage(m telegramtest.Message) Message {
	return Message{Chat: strconv.FormatInt(m.Chat, 10), ID: strconv.Itoa(m.ID), Text: m.Text, Bot: m.FromBot(), At: m.At}
}

type telegram struct{ sim *telegramtest.Server }

func (t telegram) Watch(f func(Message)) (stop func()) {
	return t.sim.Watch(func(c telegramtest.Change) {
		switch c.Kind {
		case telegramtest.ChangeMessage, telegramtest.ChangeEdit:
			m := telegramMessage(*c.Message)
			m.At, m.Edited = c.At, c.Kind == telegramtest.ChangeEdit
			f(m)
		case telegramtest.ChangeDelete:
			f(Message{Chat: strconv.FormatInt(c.Chat, 10), ID: strconv.Itoa(c.MessageID), Deleted: true, At: c.At})
		}
	})
}

func (t telegram) Drafts(f func(chat string, at time.Time)) (stop func()) {
	return t.sim.Watch(func(c telegramtest.Change) {
		if c.Kind == telegramtest.ChangeDraft && c.Draft != nil {
			f(strconv.FormatInt(c.Chat, 10), c.At)
		}
	})
}

func (t telegram) History(chat string) (out []Message) {
	id, err := strconv.ParseInt(chat, 10, 64)
	if err != nil || t.sim.User(id) == nil {
		return nil
	}
	for _, m := range t.sim.History(t.sim.User(id).DM()) {
		out = append(out, telegramMessage(m))
	}
	return out
}

func (t telegram) Online() bool { return t.sim.Bot().Polling() }

func (t telegram) Seen(after time.Time) time.Time {
	for _, r := range t.sim.Requests(0, "") {
		if r.At.After(after) {
			return r.At
		}
	}
	return time.Time{}
}
