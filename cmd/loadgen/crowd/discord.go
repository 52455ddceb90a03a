package crowd

import (
	"strconv"
	"time"

	"gatehouse/connectors/discord/discordtest"
)

// perChannel is how many users write in each channel.
const perChannel = 3

// Discord creates that many users on sim, each in a direct conversation with its
// bot, and with channels above 0 all of them in a guild with that many channels,
// in each of which some mention the bot. It needs at least one user.
func Discord(sim *discordtest.Server, people, channels int) (*Platform, error) {
	sim.Bot().SetIntents(discordtest.IntentContent)
	p := &Platform{
		simulator: discord{sim}, Name: "discord", URL: sim.URL(), Token: sim.Token(), Handler: sim, Count: sim.Count, Close: sim.Close,
		Methods: []string{"createMessage", "editMessage", "triggerTyping", "getMessages"},
	}
	var users []*discordtest.User
	for i := range people {
		u, err := sim.AddUser(discordtest.Account{Name: "Person " + strconv.Itoa(i+1)})
		if err != nil {
			return nil, err
		}
		users = append(users, u)
		p.Chats = append(p.Chats, Chat{ID: u.DM().String(), say: []func(string) (Message, error){says(u, u.DM(), "")}})
	}
	if channels == 0 {
		return p, nil
	}
	guild, err := sim.AddGuild("Club", users[0], users[1:]...)
	if err != nil {
		return nil, err
	}
	for i := range channels {
		id, err := guild.AddChannel(discordtest.Text, "channel-"+strconv.Itoa(i+1))
		if err != nil {
			return nil, err
		}
		c := Chat{ID: id.String(), Place: id.String()}
		for k := range min(perChannel, people) {
			c.say = append(c.say, says(users[(i+k)%people], id, sim.Bot().Mention()+" "))
		}
		p.Chats = append(p.Chats, c)
	}
	return p, nil
}

func says(u *discordtest.User, in discordtest.ID, before string) func(string) (Message, error) {
	return func(text string) (Message, error) {
		m, err := u.Say(in, before+text)
		return discordMessage(m), err
	}
}

func discordMessage(m discordtest.Message) Message {
	return Message{Chat: m.Channel.String(), ID: m.ID.String(), Text: m.Text, Bot: m.From.Bot, Silent: m.Flags&discordtest.SuppressNotifications != 0, At: m.At}
}

type discord struct{ sim *discordtest.Server }

func (d discord) Watch(f func(Message)) (stop func()) {
	return d.sim.Watch(func(c discordtest.Change) {
		switch c.Kind {
		case discordtest.ChangeMessage, discordtest.ChangeEdit:
			m := discordMessage(*c.Message)
			m.At, m.Edited = c.At, c.Kind == discordtest.ChangeEdit
			f(m)
		case discordtest.ChangeDelete:
			f(Message{Chat: c.Channel.String(), ID: c.MessageID.String(), Deleted: true, At: c.At})
		}
	})
}

// Drafts: what is unfinished is a message there.
func (d discord) Drafts(func(string, time.Time)) (stop func()) { return func() {} }

func (d discord) History(chat string) (out []Message) {
	id, err := discordtest.ParseID(chat)
	if err != nil {
		return nil
	}
	for _, m := range d.sim.History(id) {
		out = append(out, discordMessage(m))
	}
	return out
}

func (d discord) Online() bool { return d.sim.Bot().Online() }

func (d discord) Seen(after time.Time) time.Time {
	for _, e := range d.sim.GatewayLog(0, "connect") {
		if e.At.After(after) {
			return e.At
		}
	}
	return time.Time{}
}
