package inbound

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"gatehouse/connectors"
	"gatehouse/core"
)

// media is the content of a message other than text. A field that cannot be decoded is
// omitted, and the message is still read.
type media struct {
	Photo     lenient[[]file]   `json:"photo"`     // sizes of one picture, the largest last
	Animation lenient[*file]    `json:"animation"` // is next to document
	Document  lenient[*file]    `json:"document"`
	Voice     lenient[*file]    `json:"voice"`
	Audio     lenient[*file]    `json:"audio"`
	Video     lenient[*file]    `json:"video"`
	VideoNote lenient[*file]    `json:"video_note"`
	Sticker   lenient[*sticker] `json:"sticker"`
	Venue     lenient[*venue]   `json:"venue"` // is next to location
	Location  lenient[*point]   `json:"location"`
	Contact   lenient[*contact] `json:"contact"`
	Poll      lenient[*poll]    `json:"poll"`
	Dice      lenient[*dice]    `json:"dice"`
	Story     present           `json:"story"`
	Game      present           `json:"game"`
	PaidMedia present           `json:"paid_media"`
	Checklist present           `json:"checklist"`
}

type (
	file struct {
		ID   string `json:"file_id"`
		Name string `json:"file_name"`
		Type string `json:"mime_type"`
		Size int64  `json:"file_size"`
	}
	sticker struct {
		Emoji string `json:"emoji"`
	}
	point struct {
		Latitude  float64 `json:"latitude"`
		Longitude float64 `json:"longitude"`
	}
	venue struct {
		Location point  `json:"location"`
		Title    string `json:"title"`
		Address  string `json:"address"`
	}
	contact struct {
		Phone     string `json:"phone_number"`
		FirstName string `json:"first_name"`
		LastName  string `json:"last_name"`
	}
	poll struct {
		Question string `json:"question"`
		Options  []struct {
			Text string `json:"text"`
		} `json:"options"`
	}
	dice struct {
		Emoji string `json:"emoji"`
		Value int    `json:"value"`
	}
)

type lenient[T any] = connectors.Lenient[T]

// present is true for a field that is there and not null; its value is not read.
type present bool

func (p *present) UnmarshalJSON(b []byte) error {
	*p = present(!bytes.Equal(b, []byte("null")))
	return nil
}

// files returns what lies with the platform and can be fetched. A video note is a voice
// message with a picture, where these are transcribed.
func (m *media) files(hears bool) []core.File {
	if n := len(m.Photo.V); n > 0 {
		return m.Photo.V[n-1].asFile("photo.jpg", "image/jpeg", false)
	}
	for _, k := range [...]struct {
		f          *file
		name, kind string
		voice      bool
	}{
		{m.Animation.V, "animation.mp4", "video/mp4", false}, {m.Document.V, "document", "", false},
		{m.Voice.V, "voice.ogg", "audio/ogg", true}, {m.Audio.V, "audio.mp3", "audio/mpeg", false},
		{m.Video.V, "video.mp4", "video/mp4", false}, {m.VideoNote.V, "video-message.mp4", "video/mp4", hears},
	} {
		if k.f != nil {
			return k.f.asFile(k.name, k.kind, k.voice)
		}
	}
	return nil
}

// asFile gives f a name and a type where the platform gives none.
func (f *file) asFile(name, kind string, voice bool) []core.File {
	if f.ID == "" {
		return nil
	}
	out := core.File{Name: f.Name, Type: f.Type, Size: max(f.Size, 0), Ref: f.ID, Voice: voice}
	if out.Name == "" {
		out.Name = name
	}
	if out.Type == "" {
		out.Type = kind
	}
	return []core.File{out}
}

// description returns a text for content that needs no file, or "" without any.
func (m *media) description() string {
	clean := func(s string) string { return core.CutRunes(core.CleanName(s), 300) }
	switch {
	case m.Sticker.V != nil:
		return strings.TrimSpace("[sticker "+clean(m.Sticker.V.Emoji)) + "]"
	case m.Venue.V != nil:
		v := m.Venue.V
		return fmt.Sprintf("[place: %s, %s, at %s]", clean(v.Title), clean(v.Address), v.Location)
	case m.Location.V != nil:
		return fmt.Sprintf("[location: %s]", *m.Location.V)
	case m.Contact.V != nil:
		c := m.Contact.V
		return fmt.Sprintf("[contact: %s, %s]", clean(c.FirstName+" "+c.LastName), clean(c.Phone))
	case m.Poll.V != nil:
		text := "[poll: " + clean(m.Poll.V.Question)
		for i, o := range m.Poll.V.Options {
			text += fmt.Sprintf("; %d. %s", i+1, clean(o.Text))
		}
		return text + "]"
	case m.Dice.V != nil:
		return fmt.Sprintf("[%s shows %d]", clean(m.Dice.V.Emoji), m.Dice.V.Value)
	}
	return ""
}

// shown names all content but text, in brackets, or returns "".
func (m *media) shown() string {
	if text := m.description(); text != "" {
		return text
	}
	files := m.files(false)
	switch {
	case len(files) == 0 && m.unread() == "":
		return ""
	case len(files) == 0:
		return "[a " + m.unread() + "]"
	case m.Animation.V != nil:
		return "[an animation]"
	case len(m.Photo.V) > 0:
		return "[a photo]"
	case m.Voice.V != nil:
		return "[a voice message]"
	case m.VideoNote.V != nil:
		return "[a video message]"
	}
	return "[a file: " + core.CutRunes(core.CleanName(files[0].Name), 200) + "]"
}

// String returns the point in degrees, to about a metre.
func (p point) String() string {
	return strconv.FormatFloat(p.Latitude, 'f', 5, 64) + ", " + strconv.FormatFloat(p.Longitude, 'f', 5, 64)
}

// unread names content that we can't read, for users; "" for none.
func (m *media) unread() string {
	for _, k := range [...]struct {
		is   present
		name string
	}{{m.Story, "story"}, {m.Game, "game"}, {m.PaidMedia, "paid post"}, {m.Checklist, "checklist"}} {
		if k.is {
			return k.name
		}
	}
	return ""
}
