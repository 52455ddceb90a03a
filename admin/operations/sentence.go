package operations

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gatehouse/admin/page"
	"gatehouse/core"
	"gatehouse/core/store"
)

// EventNames are the names that sentences about events need.
type EventNames struct {
	Names    page.Names
	Subjects map[string]string // of pairing requests by their id, of groups by "bot:place"
	// Title returns the title of a conversation, and Remembered the text of what is remembered of
	// the reader, by its id; "" where there is none. nil: things are not named.
	Title, Remembered func(id string) string
}

// sentences say what was done, by action. They continue the name of who did it,
// except those that begin with a capital letter. A word in braces is a
// member of the event's detail, or one of those that value knows.
var sentences = map[string]string{
	"pairing.request":          "New request: {person} asked to talk to {bot}",
	"pairing.approve":          "let {person} in as {trust} on {bot}",
	"pairing.deny":             "denied {person} on {bot}",
	"pairing.block":            "blocked {person} on {bot}",
	"pairing.undo":             "took back that {person} was {was} on {bot}",
	"pairing.expire":           "The request of {person} to {bot} expired unanswered",
	"access.revoke":            "revoked the access of {user} to {bot}",
	"access.remove":            "removed an access of {user} to {bot}",
	"access.change":            "changed the access of {user} to {bot} to {trust}",
	"access.give":              "gave {user} access to {bot} as {trust}",
	"access.block":             "blocked {subject} on {bot}",
	"access.unblock":           "unblocked {subject} on {bot}",
	"access.undo":              "took back the block of {subject} on {bot}",
	"identity.link":            "linked another account to {user}",
	"identity.unlink":          "separated the account on {platform} from {user}",
	"link.code":                "asked for a code to link another account",
	"user.create":              "added {user} to the people",
	"user.forget":              "deleted {user} with all their data",
	"user.export":              "exported the data of {user}",
	"user.download":            "downloaded the data of {user}",
	"invite.create":            "made an invitation to {bot} as {trust}",
	"invite.revoke":            "revoked an invitation",
	"invite.use":               "let {person} in on {bot}, by an invitation",
	"owner.code":               "made a code to claim the bots",
	"owner.claim":              "claimed the bots on {platform}",
	"place.enable":             "enabled the group {group} as {trust}",
	"place.disable":            "disabled the group {group}",
	"place.set":                "changed how the group {group} is answered",
	"place.move":               "The group {group} has a new id",
	"bot.add":                  "added the bot {subject} on {platform}",
	"bot.remove":               "removed the bot {subject}",
	"bot.start":                "started the bot {subject}",
	"bot.stop":                 "stopped the bot {subject}",
	"queue.retry":              "retried a message that had been given up",
	"queue.dismiss":            "dismissed a message that had been given up",
	"queue.send_again":         "sent a reply again",
	"queue.settle":             "settled a reply that failed or whose outcome was unknown",
	"queue.retry_send":         "retried a reply",
	"queue.give_up":            "gave up a reply that was being retried",
	"raise.ask":                "asked for trust full on {bot} for {for}",
	"raise.confirm":            "confirmed trust full on {bot} for {for}",
	"raise.deny":               "denied trust full on {bot}",
	"raise.end":                "ended trust full on {bot}",
	"raise.lapse":              "The question about trust full on {bot} expired unanswered",
	"ask.decide":               "{decision}",
	"ask.answer":               "answered a question of the model",
	"grant.revoke":             "revoked a permission for tool calls",
	"session.update":           "changed {fields} of {conversation}",
	"session.delete":           "deleted {conversation}",
	"session.lower":            "lowered the trust of {conversation} to {trust}",
	"session.stop":             "stopped an answer in {conversation}",
	"run.abort":                "stopped an answer in {conversation}",
	"tool.use":                 "had a helper use {tool}",
	"run.retry":                "had a message answered again",
	"message.send":             "sent a message with {bot}",
	"budget.set":               "set the budget of {user} to {budget}",
	"key.create":               "made an API key for {holder} at trust {trust}",
	"key.change":               "changed an API key",
	"key.revoke":               "revoked an API key",
	"key.expire":               "An API key expired",
	"key.rotate":               "gave an API key a new secret",
	"admin.signin":             "signed in",
	"admin.signout":            "signed out",
	"admin.signout_everywhere": "signed out everywhere",
	"admin.password":           "changed the password",
	"admin.create":             "made the account {user} with the role {role}",
	"admin.rename":             "renamed the account {user}",
	"admin.role":               "changed the role of the account {user} to {role}",
	"admin.reset":              "gave the account {user} a new one-time password",
	"admin.remove":             "removed the account {user}",
	"admin.session_end":        "ended sessions of the account {user}",
	"admin.two_step_on":        "turned two-step sign-in on for the account {user}",
	"admin.two_step_off":       "turned two-step sign-in off for the account {user}",
	"admin.recovery_codes":     "made new recovery codes for the account {user}",
	"admin.recovery_code":      "used a recovery code to sign in; {left} are left",
	"bots.adopt":               "took over the users of the original system",
	"memory.add":               "had {memory} remembered",
	"memory.change":            "changed {memory} in the memory",
	"memory.decide":            "decided whether {memory} is remembered",
	"memory.delete":            "deleted {memory} from the memory",
	"memory.restore":           "restored {memory} in the memory",
	"sync.push":                "synced files from {device}",
	"sync.delete":              "deleted files, in a sync from {device}",
	"setting.change":           "changed {setting}",
	"agent.write":              "saved the file {subject}",
	"daily.run":                "started the daily agent {subject} for {date}",
	"daily.enable":             "turned the daily agent {subject} on",
	"daily.disable":            "turned the daily agent {subject} off",
	"daily.add":                "added the sample of a daily agent {subject}",
	"journal.write":            "wrote in the journal",
	"journal.edit":             "edited an entry of the journal",
	"journal.delete":           "deleted an entry of the journal",
	"journal.renumber":         "A copied entry of the journal got an id of its own",
	"project.create":           "made the project {subject}",
	"project.rename":           "renamed the project {subject}",
	"project.delete":           "deleted the project {subject}",
	"context.save":             "saved the context {subject}",
	"context.delete":           "deleted the context {subject}",
	"import.start":             "began to import conversations",
	"import.stop":              "stopped an import of conversations",
	"import.end":               "An import of conversations ended",
	"index.add":                "added passages to the search",
	"index.delete":             "had a document indexed again",
	"backup.make":              "made the backup {subject}",
	"backup.download":          "downloaded the backup {subject}",
	"backup.delete":            "deleted the backup {subject}",
	"content_key.rotate":       "encrypted all texts again with the key {subject}",
	"content_key.lost":         "deleted the texts whose key is lost; the new key is {subject}",
	"backup.restore":           "restored the backup {subject}",
	"backup.restore_begin":     "began to restore the backup {subject}",
	"backup.restore_cancel":    "cancelled the restore of the backup {subject}",
	"mcp.call":                 "used MCP: {subject}",
	"socket.request":           "used the command line: {subject}",
}

// named are the words in braces that are names of users and groups.
var named = []string{"person", "user", "group", "holder", "conversation", "memory"}

// fieldNames are what session.update names, for users.
var fieldNames = map[string]string{"title": "the title", "archived": "the archiving", "model": "the model", "agent_type": "the agent",
	"workspace": "the workspace", "working_directory": "the directory", "project_id": "the project", "metadata": "the details", "tags": "the tags",
	"contexts": "the context", "module": "the module"}

// sentence returns e as a sentence with names.
func (t EventNames) sentence(e store.AuditEvent) []page.Words {
	text, known := sentences[e.Action]
	if !known {
		verb := didWord(e.Action)
		if e.Subject != "" {
			verb += ", " + page.Exact(e.Subject)
		}
		return []page.Words{{Text: t.actor(e), Name: true}, {Text: ": " + verb}}
	}
	var detail map[string]any
	_ = json.Unmarshal(e.Detail, &detail) // none: words in braces are “?”
	var out []page.Words
	if c := text[0]; c >= 'a' && c <= 'z' || c == '{' {
		out = append(out, page.Words{Text: t.actor(e), Name: true}, page.Words{Text: " "})
	}
	for text != "" {
		before, rest, found := strings.Cut(text, "{")
		if before != "" {
			out = append(out, page.Words{Text: before})
		}
		if !found {
			break
		}
		word, after, _ := strings.Cut(rest, "}")
		out = append(out, page.Words{Text: t.value(word, e, detail), Name: slices.Contains(named, word)})
		text = after
	}
	return out
}

// decision returns what was decided on an ask of a kind (core/ask).
func decision(kind, option any) string {
	switch {
	case kind == "pairing":
		return "decided on a request"
	case kind != "permission":
		return "answered a question"
	case option == "granted":
		return "allowed a tool call"
	case option == "denied":
		return "denied a tool call"
	}
	return "decided on a tool call"
}

// value returns the value of a name in braces.
func (t EventNames) value(word string, e store.AuditEvent, detail map[string]any) string {
	switch word {
	case "subject":
		return page.Exact(e.Subject)
	case "person":
		if user, ok := detail["user"].(float64); ok {
			return t.Names.Of(int64(user))
		}
		if name, ok := t.Subjects[e.Subject]; ok {
			return page.DisplayName(name)
		}
		return "someone"
	case "user":
		return t.user(e.Subject)
	case "holder":
		user, _ := detail["user"].(float64)
		return t.Names.Of(int64(user))
	case "group":
		_, place, _ := strings.Cut(e.Subject, ":")
		if name := t.Subjects[e.Subject]; strings.TrimSpace(name) != "" {
			return name
		}
		return page.Exact(place)
	case "conversation":
		return quoted(t.Title, e.Subject, "the conversation ", "a conversation")
	case "memory":
		return quoted(t.Remembered, e.Subject, "", "a correction")
	case "fields":
		return fields(detail[word])
	case "decision":
		return decision(detail["kind"], detail["option"])
	case "setting":
		return setting(e.Subject, detail)
	}
	switch v := detail[word].(type) {
	case nil:
		return "?"
	case string:
		if word == "bot" && v == core.APIBot {
			return "the API"
		}
		if word == "bot" && v == "*" {
			return "every bot"
		}
		if word == "platform" {
			v = page.Platform(v)
		}
		return core.CutRunes(page.Exact(v), maxSaid)
	case []any:
		parts := make([]string, len(v))
		for i, part := range v {
			parts[i] = fmt.Sprint(part)
		}
		return core.CutRunes(page.Exact(strings.Join(parts, ", ")), maxSaid)
	default:
		return core.CutRunes(page.Exact(fmt.Sprint(v)), maxSaid)
	}
}

// quoted returns what name calls the thing of an id, in quotes; other where it has no name.
func quoted(name func(id string) string, id, before, other string) string {
	if name != nil {
		if text := core.CleanName(name(id)); text != "" {
			return before + "“" + page.Exact(text) + "”"
		}
	}
	return other
}

// fields returns which parts of a conversation were changed.
func fields(list any) string {
	names, _ := list.([]any)
	var parts []string
	for _, n := range names {
		part, known := fieldNames[fmt.Sprint(n)]
		if !known {
			part = page.Exact(fmt.Sprint(n))
		}
		parts = append(parts, part)
	}
	switch n := len(parts); n {
	case 0:
		return "something"
	case 1:
		return parts[0]
	default:
		return strings.Join(parts[:n-1], ", ") + " and " + parts[n-1]
	}
}

// maxSaid bounds a value in a sentence, in characters.
const maxSaid = 80

// setting returns which setting was changed, and to what where that is one value.
func setting(subject string, detail map[string]any) string {
	value := detail["value"]
	if values, ok := detail["values"].(map[string]any); ok && len(values) == 1 {
		value = values[subject]
	}
	switch v := value.(type) {
	case string:
		if v == "" {
			return subject + " to its default"
		}
		return subject + " to " + core.CutRunes(page.Exact(v), maxSaid)
	case float64, bool:
		return subject + " to " + fmt.Sprint(v)
	}
	return page.Exact(subject)
}

// user returns the name of the user whose number is s.
func (t EventNames) user(s string) string {
	user, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return page.Exact(s)
	}
	return t.Names.Of(user)
}

// actor returns who did it. Number 0 is no user; earlier versions recorded users as added
// in chat whom the gateway had added.
func (t EventNames) actor(e store.AuditEvent) string {
	switch {
	case e.User != 0:
		return t.Names.Of(e.User)
	case e.Via == "cli":
		return "The command line"
	case e.Via == "chat" && e.Action != "user.create":
		return "Someone in chat"
	}
	return gateway
}

// gateway is the actor of what no user did.
const gateway = "The gateway"
