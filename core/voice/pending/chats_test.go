package pending

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/ask"
	"gatehouse/core/store"
	"gatehouse/core/voice"
)

// A chat records what is sent to it.
type chat struct {
	may     bool
	full    bool            // no further choice can be opened
	broken  string          // of the key of a message that cannot be stored
	gone    map[string]bool // recordings, by path
	posted  []core.Reply
	choices []ask.Ask
}

func (c *chat) chats() Chats {
	return Chats{
		May: func(_ context.Context, _ *store.Tx, to core.Address, from core.Peer) (bool, error) {
			return c.may && to.Bot == "bot" && from.ID == "ada", nil
		},
		Gone:   func(path string) bool { return c.gone[path] },
		Render: func(_ core.Address, markdown string) []core.Part { return []core.Part{{Text: markdown}} },
		Post: func(_ context.Context, _ *store.Tx, r core.Reply) error {
			for _, was := range c.posted {
				if was.Key == r.Key {
					return core.Errorf(core.Conflict, "the key was used")
				}
			}
			if c.broken != "" && strings.Contains(r.Key, c.broken) {
				return errors.New("it cannot be stored")
			}
			c.posted = append(c.posted, r)
			return nil
		},
		Choose: func(_ context.Context, _ *store.Tx, a ask.Ask) error {
			if c.full {
				return core.Errorf(core.Busy, "too many")
			}
			c.choices = append(c.choices, a)
			return nil
		},
	}
}

// note adds a voice message that waits.
func (f *fixture) note(name string) {
	f.t.Helper()
	in := &core.Inbound{Address: core.Address{Bot: "bot", Chat: "c1/5", Thread: "5", Place: "c1"}, From: core.Peer{Platform: "telegram", ID: "ada"}, MessageID: "77"}
	for range 2 { // a run that is ended twice
		if err := f.db.Tx(f.t.Context(), func(tx *store.Tx) error {
			return f.AddMessage(f.t.Context(), tx, 7, in, core.File{Path: "Chat/assets/" + name, Voice: true})
		}); err != nil {
			f.t.Fatal(err)
		}
	}
}

func (f *fixture) waiting() (n int) {
	f.t.Helper()
	if err := f.db.Get(f.t.Context(), &n, `SELECT count(*) FROM voice_pending`); err != nil {
		f.t.Fatal(err)
	}
	return n
}

func TestTheTextOfAVoiceMessageIsSentToItsChatWhenTheEngineWorksAgain(t *testing.T) {
	f := open(t)
	f.note("a.ogg")
	f.hear = func(string) (string, error) {
		return "", &voice.Fault{Code: voice.FaultEngine, Err: errors.New("the engine is down")}
	}
	if _, err := f.Retry(t.Context(), func(string) {}); err == nil || len(f.posted) != 0 || f.waiting() != 1 {
		t.Fatalf("%v, posted %+v, %d waiting", err, f.posted, f.waiting())
	}
	f.hear = func(path string) (string, error) { return "Where is the\nshed? *" + path + "*", nil }
	f.clock.Advance(2 * firstPause)
	if r, err := f.Pass(t.Context()); err != nil || r.Transcribed != 1 || f.waiting() != 0 {
		t.Fatalf("%+v, %v, %d waiting", r, err, f.waiting())
	}
	if len(f.posted) != 1 || len(f.choices) != 1 {
		t.Fatalf("posted %+v, choices %+v", f.posted, f.choices)
	}
	reply, choice := f.posted[0], f.choices[0]
	if reply.Address != (core.Address{Bot: "bot", Chat: "c1/5", Thread: "5", Place: "c1"}) || reply.Parts[0].ReplyTo != "77" || !strings.Contains(reply.Parts[0].Text, `> Where is the shed? \*Chat/assets/a.ogg\*`) {
		t.Errorf("sent %+v", reply)
	}
	var said ask.Said
	if err := json.Unmarshal([]byte(choice.Payload), &said); err != nil || said.Text != "Where is the\nshed? *Chat/assets/a.ogg*" || choice.User != 7 || choice.Chat != "c1/5" {
		t.Errorf("%+v, %v", choice, err)
	}
	if b := reply.Parts[0].Buttons; len(b) != 1 || b[0][0].Data != choice.Data(ask.OptionGoOn) {
		t.Errorf("buttons %+v", b)
	}
}

func TestALongTextOfAVoiceMessageIsShownInPart(t *testing.T) {
	f := open(t)
	f.full = true
	f.note("a.ogg")
	f.hear = func(string) (string, error) { return strings.Repeat("shed ", 1000), nil }
	if r := f.retry(); r.Transcribed != 1 || len(f.posted) != 1 || len(f.posted[0].Parts[0].Text) > maxShown+100 || len(f.posted[0].Parts[0].Buttons) != 0 {
		t.Errorf("%+v, %+v", r, f.posted)
	}
}

func TestTheSenderOfAVoiceMessageIsNotifiedWhyItHasNoText(t *testing.T) {
	f := open(t)
	f.note("silent.ogg")
	f.note("damaged.ogg")
	f.hear = func(path string) (string, error) {
		if strings.HasSuffix(path, "silent.ogg") {
			return " ", nil
		}
		return "", &voice.Fault{Code: voice.FaultDamaged, Err: errors.New("damaged")}
	}
	if r := f.retry(); r != (Report{Dropped: 2}) || f.waiting() != 0 || len(f.posted) != 2 || len(f.choices) != 0 {
		t.Fatalf("%+v, posted %+v", r, f.posted)
	}
	for i, why := range []string{"it contains no speech", "the recording is damaged"} {
		if text := f.posted[i].Parts[0].Text; !strings.Contains(text, why) {
			t.Errorf("%q, want %q", text, why)
		}
	}
}

func TestAVoiceMessageIsGivenUpAfterSevenDaysAndItsSenderNotified(t *testing.T) {
	f := open(t)
	f.note("a.ogg")
	f.clock.Advance(keepInChat - time.Hour)
	prune := func(want int) {
		t.Helper()
		if n, err := f.Chores()[0].Run(t.Context()); n != want || err != nil {
			t.Errorf("%d given up, want %d: %v", n, want, err)
		}
	}
	prune(0)
	f.clock.Advance(2 * time.Hour)
	prune(1)
	prune(0)
	if len(f.posted) != 1 || !strings.Contains(f.posted[0].Parts[0].Text, "the transcription failed for 7 days") || f.waiting() != 0 {
		t.Errorf("%+v", f.posted)
	}
}

// Who has no access any more gets no text, and whose data is forgotten neither, also where
// that happens while it is transcribed.
func TestTheTextOfAVoiceMessageIsNotSentToWhoHasNoAccessOrIsForgotten(t *testing.T) {
	f := open(t)
	f.may = false
	f.note("a.ogg")
	if r := f.retry(); r != (Report{Dropped: 1}) || f.asked != 0 {
		t.Errorf("%+v, asked %d times", r, f.asked)
	}
	f.may = true
	for name, during := range map[string]func(tx *store.Tx) error{
		"no access": func(*store.Tx) error { f.may = false; return nil },
		"forgotten": func(tx *store.Tx) error {
			f.may = true
			return f.Forget(t.Context(), tx, &core.Removal{Person: core.Person{User: 7}, Last: true})
		},
	} {
		f.may = true
		f.note(name)
		f.hear = func(string) (string, error) { return "We had tea.", f.db.Tx(t.Context(), during) }
		f.retry()
		if len(f.posted) != 0 || f.waiting() != 0 {
			t.Errorf("%s: posted %+v, %d waiting", name, f.posted, f.waiting())
		}
	}
}

func TestAVoiceMessageFollowsItsChatAndItsUser(t *testing.T) {
	f := open(t)
	f.note("a.ogg")
	if err := f.db.Tx(t.Context(), func(tx *store.Tx) error {
		return errors.Join(f.Move(t.Context(), tx, "other", "c1", "c9"), f.Move(t.Context(), tx, "bot", "c1", "c2"), f.Merge(t.Context(), tx, 7, 8))
	}); err != nil {
		t.Fatal(err)
	}
	var got struct {
		User  int64  `db:"user_id"`
		Place string `db:"place"`
	}
	if err := f.db.Get(t.Context(), &got, `SELECT user_id, place FROM voice_pending`); err != nil || got.User != 8 || got.Place != "c2" {
		t.Errorf("%+v, %v", got, err)
	}
}

// The text of a voice message is promised while there is room, and no promise is broken: other
// recordings may take the room before the run ends.
func TestAVoiceMessageThatWasPromisedItsTextWaits(t *testing.T) {
	f := open(t)
	fill := func(n int) {
		t.Helper()
		if err := f.db.Tx(t.Context(), func(tx *store.Tx) error {
			for i := range n {
				if err := f.Add(t.Context(), tx, 7, strings.Repeat("x", i), []string{"a.ogg"}); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	fill(maxOfUser - 2)
	if !f.Room(t.Context(), 7, 2) || f.Room(t.Context(), 7, 3) || !f.Room(t.Context(), 8, maxOfUser) {
		t.Error("there is room for two further ones of the user, and for all of another")
	}
	fill(maxOfUser)
	if f.note("promised.ogg"); f.waiting() != maxOfUser+1 || f.Room(t.Context(), 7, 1) {
		t.Errorf("%d wait, want the promised one too and none after it", f.waiting())
	}
}

// A deleted recording is claimed to be kept by no message, and has no text.
func TestTheSenderOfAVoiceMessageThatIsGoneGetsNothing(t *testing.T) {
	f := open(t)
	f.note("before.ogg")
	f.note("during.ogg")
	f.note("late.ogg")
	f.gone = map[string]bool{"Chat/assets/before.ogg": true}
	f.hear = func(path string) (string, error) {
		if strings.HasSuffix(path, "during.ogg") {
			f.gone[path] = true
			return "", &voice.Fault{Code: voice.FaultDamaged, Err: errors.New("the recording is gone")}
		}
		f.gone[path] = true
		return "We had tea.", nil
	}
	f.retry()
	f.note("old.ogg")
	f.gone["Chat/assets/old.ogg"] = true
	f.clock.Advance(keepInChat + time.Hour)
	if _, err := f.Chores()[0].Run(t.Context()); err != nil {
		t.Error(err)
	}
	if f.asked != 2 || f.waiting() != 0 || len(f.posted) != 0 || len(f.choices) != 0 {
		t.Errorf("asked %d times, %d waiting, posted %+v, choices %+v", f.asked, f.waiting(), f.posted, f.choices)
	}
}

// A gateway that is restarted every day gives up as many as there are, each day.
func TestAllVoiceMessagesAreGivenUpInOneRunWithinTheHour(t *testing.T) {
	f := open(t)
	for i := range perPrune + 1 {
		f.note(strings.Repeat("a", i+1) + ".ogg")
	}
	f.broken = "/aa.ogg"
	f.clock.Advance(keepInChat + time.Hour)
	chore := f.Chores()[0]
	if n, err := chore.Run(t.Context()); n != perPrune || err == nil || f.waiting() != 1 || len(f.posted) != perPrune {
		t.Errorf("%d given up, %d waiting, %d posted: %v", n, f.waiting(), len(f.posted), err)
	}
	if chore.Every > time.Hour {
		t.Errorf("every %s", chore.Every)
	}
}

// An engine that works again on the eighth day does not make the notice wrong.
func TestAVoiceMessageThatWaitedTooLongIsGivenUpWithoutAnotherTry(t *testing.T) {
	f := open(t)
	f.note("a.ogg")
	f.entry("")
	f.hear = func(string) (string, error) { return "We had tea.", nil }
	f.clock.Advance(keepInChat + time.Hour)
	if r, err := f.Pass(t.Context()); err != nil || r != (Report{Transcribed: 1, Dropped: 1}) || f.asked != 1 {
		t.Errorf("%+v, asked %d times: %v", r, f.asked, err)
	}
	if len(f.posted) != 1 || !strings.Contains(f.posted[0].Parts[0].Text, "the transcription failed for 7 days") {
		t.Errorf("posted %+v", f.posted)
	}
	f.entry("")
	f.clock.Advance(keep + time.Hour)
	if r := f.retry(); r != (Report{Dropped: 1}) || f.asked != 1 {
		t.Errorf("%+v, asked %d times", r, f.asked)
	}
}

func TestAVoiceMessageThatCannotBeAnsweredDoesNotKeepOthersFromTheirText(t *testing.T) {
	f := open(t)
	f.broken = "a.ogg"
	f.note("a.ogg")
	for i := range perPass {
		f.note(strings.Repeat("b", i+1) + ".ogg")
	}
	f.hear = func(string) (string, error) { return "We had tea.", nil }
	if r, err := f.Retry(t.Context(), func(string) {}); err == nil || r != (Report{Transcribed: perPass, Waiting: 1}) {
		t.Errorf("%+v, %v", r, err)
	}
	f.note("c.ogg")
	f.clock.Advance(lastPause)
	if r, err := f.Pass(t.Context()); err == nil || r != (Report{Transcribed: 1}) {
		t.Errorf("%+v, %v", r, err)
	}
}

// While a recording is transcribed its row is removed, and the next one gets its number.
func TestAnotherRecordingWithTheNumberOfOneThatIsGoneStaysWaiting(t *testing.T) {
	for name, result := range map[string]error{"a text": nil, "a fault": &voice.Fault{Code: voice.FaultEngine, Err: errors.New("down")}, "none": &voice.Fault{Code: voice.FaultDamaged}} {
		f := open(t)
		f.note("a.ogg")
		f.hear = func(string) (string, error) {
			if err := f.db.Tx(t.Context(), func(tx *store.Tx) error {
				_, err := tx.Exec(t.Context(), `DELETE FROM voice_pending`)
				return err
			}); err != nil {
				t.Error(err)
			}
			f.note("b.ogg")
			return "We had tea.", result
		}
		_, _ = f.Retry(t.Context(), func(string) {
			f.hear = func(string) (string, error) { return "", &voice.Fault{Code: voice.FaultEngine} }
		})
		var tries int
		if err := f.db.Get(t.Context(), &tries, `SELECT coalesce(sum(tries), -1) FROM voice_pending WHERE path LIKE '%b.ogg'`); err != nil || f.waiting() != 1 || len(f.posted) != 0 || tries != 0 && name == "a fault" {
			t.Errorf("%s: %d waiting, %d tries, posted %+v, %v", name, f.waiting(), tries, f.posted, err)
		}
	}
}
