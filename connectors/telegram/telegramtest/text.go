package telegramtest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"gatehouse/core"
)

// Limits of texts, in UTF-16 code units ([api] sendMessage: "1-4096 characters
// after entities parsing"; caption 0-1024). The platform's library counts code
// points before the platform counts again; we count the narrower unit.
const (
	maxText     = 4096
	maxCaption  = 1024
	maxRawText  = 1 << 15 // bytes; [server] get_formatted_text "Text is too long"
	maxEntities = 100     // further ones are dropped silently by the platform
)

// Entity types a bot may send; the second list it may send, but the platform
// finds those itself and ignores them ([server] get_text_entity_type).
var (
	sendable = []string{"bold", "italic", "underline", "strikethrough", "spoiler", "code", "pre", "text_link", "text_mention", "custom_emoji", "blockquote", "expandable_blockquote", "date_time"}
	ignored  = []string{"mention", "hashtag", "cashtag", "bot_command", "url", "email", "phone_number", "bank_card_number"}
)

// units returns the length of s in UTF-16 code units.
func units(s string) int {
	n := 0
	for _, r := range s {
		n += utf16.RuneLen(r)
	}
	return n
}

// formatted reads a text with its parse_mode and entities as sendMessage does
// and returns what the chat will show.
func formatted(text, mode, rawEntities string) (string, []Entity, *apiError) {
	if len(text) > maxRawText {
		return "", nil, bad("text is too long")
	}
	if !utf8.ValidString(text) {
		return "", nil, bad("strings must be encoded in UTF-8") // [td] fix_formatted_text
	}
	if mode = strings.ToLower(mode); mode != "" && mode != "none" && text != "" {
		return unparsed(text, mode)
	}
	entities, err := parseEntities(rawEntities)
	if err != nil {
		return "", nil, err
	}
	return fixText(text, entities)
}

// unparsed takes text in a parse mode only where it holds no markup: the
// simulator parses none, and a bot that sends entities needs none.
func unparsed(text, mode string) (string, []Entity, *apiError) {
	special, ok := map[string]string{"markdown": "_*`[", "markdownv2": "_*[]()~`>#+-=|{}.!\\", "html": "<&"}[mode]
	if !ok {
		return "", nil, bad("unsupported parse_mode") // [server] get_formatted_text
	}
	if i := strings.IndexAny(text, special); i >= 0 {
		return "", nil, bad(fmt.Sprintf("can't parse entities: the simulator parses no %s (byte offset %d)", mode, i))
	}
	return fixText(text, nil)
}

func parseEntities(raw string) ([]Entity, *apiError) {
	if raw == "" {
		return nil, nil
	}
	var items []json.RawMessage
	if json.Unmarshal([]byte(raw), &items) != nil {
		return nil, nil // [server] get_input_entities: what is no array is ignored
	}
	out := make([]Entity, 0, len(items))
	for _, item := range items {
		e, keep, why := parseEntity(item)
		if why != "" {
			return nil, bad("can't parse MessageEntity: " + why) // [server] get_formatted_text
		}
		if keep {
			out = append(out, e)
		}
	}
	return out, nil
}

func parseEntity(raw json.RawMessage) (e Entity, keep bool, why string) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil || fields == nil {
		return e, false, "expected an Object"
	}
	for _, name := range []string{"offset", "length", "type"} {
		if _, ok := fields[name]; !ok {
			return e, false, fmt.Sprintf("Can't find field %q", name)
		}
	}
	if json.Unmarshal(raw, &e) != nil {
		return e, false, "Field has a wrong type"
	}
	switch {
	case slices.Contains(ignored, e.Type):
		return e, false, ""
	case e.Type == "":
		return e, false, "Type is not specified"
	case !slices.Contains(sendable, e.Type):
		return e, false, "Unsupported type specified"
	case e.Type == "text_link" && fields["url"] == nil:
		return e, false, `Can't find field "url"`
	case e.Type == "text_mention" && e.User == nil:
		return e, false, `Can't find field "user"`
	}
	return e, true, ""
}

// fixText cleans and trims text, checks that every entity lies within it and
// splits no character, and adds the entities that the platform finds itself
// ([td] MessageEntity.cpp fix_formatted_text, clean_input_string_with_entities).
func fixText(text string, entities []Entity) (string, []Entity, *apiError) {
	for _, e := range entities {
		if e.Offset < 0 || e.Offset > 1000000 {
			return "", nil, bad(fmt.Sprintf("receive an entity with incorrect offset %d", e.Offset))
		}
		if e.Length < 0 || e.Length > 1000000 {
			return "", nil, bad(fmt.Sprintf("receive an entity with incorrect length %d", e.Length))
		}
		if e.Type == "text_link" {
			if why := checkLink(e.URL); why != "" {
				return "", nil, bad(fmt.Sprintf("entity URL '%s' is invalid: %s", e.URL, why))
			}
		}
	}
	entities = slices.DeleteFunc(slices.Clone(entities), func(e Entity) bool { return e.Length == 0 })
	core.Sort(entities, byPlace)
	text, entities, err := cleanText(text, entities)
	if err != nil {
		return "", nil, err
	}
	text, entities = trimText(text, entities)
	entities = dropNested(entities)
	if len(entities) > maxEntities {
		entities = entities[:maxEntities]
	}
	return text, mergeFound(entities, findEntities(text)), nil
}

func byPlace(a, b Entity) int {
	if a.Offset != b.Offset {
		return a.Offset - b.Offset
	}
	return b.Length - a.Length
}

// cleanText replaces control characters by spaces, drops carriage returns and
// the line and direction controls U+2028 to U+202E, and moves the entities.
func cleanText(text string, entities []Entity) (string, []Entity, *apiError) {
	var b strings.Builder
	b.Grow(len(text))
	moved := make([]int32, 0, len(text)+1) // old UTF-16 offset → new one; -1 inside a pair
	var at int32
	var bytePos []int32
	if len(entities) > 0 {
		bytePos = make([]int32, 0, len(text))
	}
	for i, r := range text {
		n := int32(utf16.RuneLen(r))
		moved = append(moved, at)
		if len(entities) > 0 {
			bytePos = append(bytePos, int32(i))
		}
		if n == 2 {
			moved = append(moved, -1)
			if len(entities) > 0 {
				bytePos = append(bytePos, int32(i+utf8.RuneLen(r)))
			}
		}
		switch {
		case r == '\r' || r >= 0x2028 && r <= 0x202e:
			continue
		case r < 32 && r != '\n':
			b.WriteByte(' ')
		default:
			b.WriteRune(r)
		}
		at += n
	}
	moved = append(moved, at)
	out := entities[:0]
	for _, e := range entities {
		end := e.Offset + e.Length
		switch {
		case e.Offset >= len(moved)-1:
			return "", nil, bad(fmt.Sprintf("entity begins after the end of the text at UTF-16 offset %d", e.Offset))
		case moved[e.Offset] < 0:
			return "", nil, bad(fmt.Sprintf("entity begins in a middle of a UTF-16 symbol at byte offset %d", bytePos[e.Offset]))
		case end > len(moved)-1:
			return "", nil, bad(fmt.Sprintf("entity beginning at UTF-16 offset %d ends after the end of the text at UTF-16 offset %d", e.Offset, end))
		case moved[end] < 0:
			return "", nil, bad(fmt.Sprintf("entity beginning at UTF-16 offset %d ends in a middle of a UTF-16 symbol at byte offset %d", e.Offset, bytePos[end]))
		}
		e.Offset, e.Length = int(moved[e.Offset]), int(moved[end]-moved[e.Offset])
		if e.Length > 0 {
			out = append(out, e)
		}
	}
	return b.String(), out, nil
}

// trimText removes white space from both ends, at the front never from inside
// an entity.
func trimText(text string, entities []Entity) (string, []Entity) {
	text = strings.TrimRight(text, " \n")
	end := units(text)
	out := entities[:0]
	for _, e := range entities {
		e.Length = min(e.Length, end-e.Offset)
		if e.Length > 0 {
			out = append(out, e)
		}
	}
	first := end
	if len(out) > 0 {
		first = out[0].Offset
	}
	cut := 0
	for cut < len(text) && cut < first && (text[cut] == ' ' || text[cut] == '\n') {
		cut++
	}
	for i := range out {
		out[i].Offset -= cut
	}
	return text[cut:], out
}

// dropNested removes entities inside code and pre ([api] "Formatting options":
// pre and code entities can't contain other entities).
func dropNested(entities []Entity) []Entity {
	out, until := entities[:0], 0
	for _, e := range entities {
		if e.Offset < until {
			continue
		}
		if e.Type == "code" || e.Type == "pre" {
			until = e.Offset + e.Length
		}
		out = append(out, e)
	}
	return out
}

// What the platform finds in everyone's text: commands, mentions, hashtags,
// links and e-mail addresses ([api] MessageEntity).
var found = core.Pattern(`(?:^|[\s(])(?:(/[A-Za-z0-9_]{1,64}(?:@[A-Za-z0-9_]{3,32})?)|(@[A-Za-z0-9_]{4,32})|(#[\pL\pN_]{1,64})|(https?://[^\s<>"]+[^\s<>".,;:!?)])|([A-Za-z0-9._+-]+@[A-Za-z0-9-]+\.[A-Za-z0-9.-]*[A-Za-z0-9]))`) // compiled at the first use: each start of the program would pay

var foundTypes = [...]string{"", "bot_command", "mention", "hashtag", "url", "email"}

func findEntities(text string) []Entity {
	if !strings.ContainsAny(text, "/@#") {
		return nil
	}
	var out []Entity
	for from := 0; from < len(text); {
		m := found().FindStringSubmatchIndex(text[from:])
		if m == nil {
			break
		}
		for g := 1; g < len(foundTypes); g++ {
			if m[2*g] >= 0 {
				start, end := from+m[2*g], from+m[2*g+1]
				out = append(out, Entity{Type: foundTypes[g], Offset: units(text[:start]), Length: units(text[start:end])})
				from = end
				break
			}
		}
	}
	return out
}

// mergeFound adds found entities where no code, pre or link of the sender lies.
func mergeFound(own, more []Entity) []Entity {
	for _, f := range more {
		covered := slices.ContainsFunc(own, func(e Entity) bool {
			fixed := e.Type == "code" || e.Type == "pre" || e.Type == "text_link" || e.Type == "text_mention" || e.Type == f.Type
			return fixed && e.Offset < f.Offset+f.Length && f.Offset < e.Offset+e.Length
		})
		if !covered {
			own = append(own, f)
		}
	}
	core.Sort(own, byPlace)
	return own
}
