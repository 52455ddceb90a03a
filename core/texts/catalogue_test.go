package texts

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"text/template"
	"text/template/parse"
	"unicode/utf16"

	"gatehouse/core"
)

// parsed are the texts of a source, by name.
func parsed(t *testing.T, source string) map[string]*template.Template {
	t.Helper()
	all, err := template.New("").Parse(source)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]*template.Template{}
	for _, x := range all.Templates() {
		if x.Name() != "" {
			out[x.Name()] = x
		}
	}
	return out
}

func namesIn(t *testing.T, source string) []string {
	t.Helper()
	return slices.Sorted(maps.Keys(parsed(t, source)))
}

// fields are the names of what a text fills in.
func fields(x *template.Template) []string {
	found := map[string]bool{}
	var walk func(n parse.Node)
	branch := func(n *parse.BranchNode) {
		walk(n.Pipe)
		walk(n.List)
		if n.ElseList != nil {
			walk(n.ElseList)
		}
	}
	walk = func(n parse.Node) {
		switch n := n.(type) {
		case *parse.ListNode:
			for _, x := range n.Nodes {
				walk(x)
			}
		case *parse.ActionNode:
			walk(n.Pipe)
		case *parse.IfNode:
			branch(&n.BranchNode)
		case *parse.WithNode:
			branch(&n.BranchNode)
		case *parse.PipeNode:
			for _, c := range n.Cmds {
				for _, a := range c.Args {
					walk(a)
				}
			}
		case *parse.FieldNode:
			found[n.Ident[0]] = true
		}
	}
	walk(x.Root)
	return slices.Sorted(maps.Keys(found))
}

// examples are values as they may be, the longest of their kind, by field. Two
// of a field are two ways that a text may go.
var examples = map[string][]any{
	"As":         {"a preference, for its conversation only", ""},
	"Scope":      {"global", "project", "conversation"},
	"Asked":      {"maximum"},
	"Answered":   {0, 9},
	"Of":         {9},
	"Level":      {"balanced"},
	"Stage":      {"asking", "comparing", "rating", "reviewing", "revising"},
	"Issues":     {strings.Repeat("i", 1000), ""},
	"Reasons":    {strings.Repeat("r", 1500)},
	"Accuracy":   {"balanced"},
	"Because":    {"welfare", "weight", "routing", "single", "review"},
	"Chose":      {true, false},
	"Confidence": {"Uncertain", ""},
	"Disputed":   {true, false},
	"Domain":     {strings.Repeat("d", 80)},
	"Unpicked":   {true, false},
	"Label":      {strings.Repeat("l", 40)},
	"Explored":   {true, false},
	"Refused":    {"taken", "too_late", "no_option", "not_disputed"},
	"Compared":   {true, false},
	"Picked":     {true, false},
	"Pressed":    {true, false},
	"Review":     {true, false},
	"Shown":      {true, false},
	"Verdict":    {"correct", "incorrect", ""},
	"Wanted":     {"balanced", "maximum"},
	"Weight":     {"0.41", ""},
	"Welfare":    {"0.83", ""},
	"About":      {"what happens to messages while I am busy"},
	"After":      {12_000},
	"Added":      {1, 100_000},
	"Again":      {true, false},
	"Ago":        {"just now"},
	"All":        {true, false},
	"At":         {"Wednesday, 23 September 2026, 23:59 CEST"},
	"Auto":       {true, false},
	"Before":     {190_000},
	"Block":      {"+ tea", ""},
	"Bot":        {strings.Repeat("b", 32)},
	"Count":      {10_000},
	"Old":        {3},
	"OldText":    {"always answer in German"},
	"Pinned":     {true, false},
	"Cards":      {1, 4},
	"Ref":        {"#12"},
	"Bound":      {"your files may take 512 MB"},
	"Budget":     {"200000 tokens"},
	"Busy":       {"interrupt"},
	"By":         {"operator via the panel"},
	"Bytes":      {20 << 20},
	"Calls":      {int64(1), int64(1234)},
	"Change":     {"A new file. Lines: 100000, bytes: 20971520.", ""},
	"Chosen":     {true, false},
	"Caution":    {strings.Repeat("c", 150), ""},
	"Code":       {"K7M2Q9XT", "off", "long", "large", "damaged", "format"},
	"Command":    {"sessions"},
	"Commands":   {"\n1. ls -l\n2. make", ""},
	"Context":    {true, false},
	"Council":    {"7 calls, $0.0123.", ""},
	"Cost":       {"$12.3456"},
	"Day":        {"2 January 2026", ""},
	"Models":     {strings.Repeat("m", 400)},
	"Within":     {"5 minutes"},
	"Example":    {model},
	"Several":    {strings.Repeat("m", 400), ""},
	"Word":       {strings.Repeat("w", 40)},
	"Levels":     {"`fast`, `balanced`, `high`, `maximum`"},
	"Examples":   {strings.Repeat("e", 500)},
	"Said":       {strings.Repeat("s", 40)},
	"Revoked":    {true, false},
	"Denied":     {true, false},
	"Blocked":    {true, false},
	"Elsewhere":  {"discord", ""},
	"Date":       {"31 Dec 2026", ""},
	"Excerpt":    {strings.Repeat("e", 300)},
	"Failed":     {true, false},
	"First":      {strings.Repeat("w", 300), ""},
	"For":        {"3 hours 59 minutes"},
	"Group":      {true, false},
	"Here":       {core.Sandboxed},
	"ID":         {"1234567890123456789"},
	"Instead":    {model},
	"Kind":       {"read", "run", "change", "message of a kind unknown here", ""},
	"Lasts":      {"365 days", ""},
	"Left":       {"$1.20", ""},
	"Lines":      {100_000},
	"Link":       {"https://t.me/" + strings.Repeat("n", 32) + "?start=K7M2Q9XT", ""},
	"MB":         {20},
	"Messages":   {int64(1), int64(4321)},
	"Minutes":    {59},
	"Paths":      {"- Notes/Shed\n- Plan.md"},
	"Heard":      {"", "We had tea \\& cake."},
	"Zone":       {"Europe/Berlin"},
	"Text":       {strings.Repeat("t", 500)},
	"Last":       {"completed", ""},
	"When":       {"Thursday, 26 November, 21:30 UTC"},
	"Since":      {"26 November, 18:30", ""},
	"Every":      {true, false},
	"Time":       {"10:30 AM"},
	"Month":      {true, false},
	"Model":      {model, ""},
	"More":       {"100000 more changed lines: read them in the panel under Approvals.", ""},
	"Most":       {10_000, 1, 0},
	"N":          {1, 25},
	"Name":       {strings.Repeat("_", core.MaxName), ""},
	"New":        {true, false},
	"Restarted":  {true, false},
	"Now":        {true, false},
	"Owner":      {true, false},
	"Pages":      {100},
	"Passages":   {5},
	"Path":       {strings.Repeat("p", 200)},
	"People":     {1, 100},
	"Per":        {"24h0m0s"},
	"Percent":    {80},
	"Platform":   {"Telegram"},
	"On":         {true, false},
	"Raised":     {true, false},
	"Read":       {20},
	"Reason":     {strings.Repeat("r", 400)},
	"Removed":    {1, 100_000},
	"Role":       {"admin"},
	"Rounds":     {50},
	"Running":    {true, false},
	"Seconds":    {3600},
	"This":       {true, false},
	"Title":      {strings.Repeat("t", 200), ""},
	"Tokens":     {int64(123_456_789)},
	"TooLong":    {0, 9000},
	"Tool":       {strings.Repeat("m", 64)},
	"Trust":      {core.Full},
	"Long":       {false, true},
	"Type":       {"application/octet-stream", "factual_correction", "persistent_instruction", "preference", "project_decision", "failure_pattern"},
	"Unpriced":   {int64(0), int64(12), int64(1234)},
	"Until":      {"Wednesday, 23 September 2026, 23:59 CEST", ""},
	"User":       {int64(1234567)},
	"Waiting":    {99},
	"Waits":      {true, false},
	"What":       {strings.Repeat("c", 1200)},
	"Who":        {strings.Repeat("n", 2*core.MaxName)},
	"Whose":      {"user", "bot", "all"},
	"Why":        {strings.Repeat("y", 400)},
	"Words":      {strings.Repeat("w", 100)},
	"Active":     {true, false},
}

var model = "openai/" + strings.Repeat("m", 64)

// most is how long a text may be where its name begins so, in the units that
// platforms count in; the others are messages, or a part of one.
func most(name string) int {
	for prefix, n := range map[string]int{
		"about_": 100, // Discord: the description of a command
		"args_":  100, // Discord: that of an option
		"button": 40,  // ours: a phone shows no more
		"menu_":  100, // Discord: what stands in a menu before something is chosen
		"form_":  45,  // Discord: the title of a modal
	} {
		if strings.HasPrefix(name, prefix) && name != "button_gone" && name != "menu_gone" {
			return n
		}
	}
	return 1900 // Discord takes 2000, less a word that it may be a repeat
}

// A text is said with whatever it may be given, in each way that it may go.
func TestEveryTextIsSaidWithExamplesAndFits(t *testing.T) {
	used := map[string]bool{}
	for _, source := range []string{commands, asks, runs, councilNotes, files, journal, memory} {
		for name, x := range parsed(t, source) {
			names := fields(x)
			for _, f := range names {
				if used[f] = true; examples[f] == nil {
					t.Fatalf("%s fills in {{.%s}}, of which there is no example", name, f)
				}
			}
			ways(names, With{}, func(w With) {
				said := Text(name, w)
				if said == "" || len(utf16.Encode([]rune(said))) > most(name) {
					t.Errorf("%s: with %v it is %q", name, w, said)
				}
				if strings.Contains(said, "GATEHOUSE_") {
					t.Errorf("%s names a setting to users who cannot change it: %q", name, said)
				}
				if strings.Contains(said, "<no value>") || strings.Contains(said, "%!") {
					t.Errorf("%s says %q", name, said)
				}
			})
		}
	}
	for f := range examples {
		if !used[f] {
			t.Errorf("there are examples of {{.%s}}, which no text fills in", f)
		}
	}
}

// ways calls do with each choice of examples for the fields.
func ways(names []string, w With, do func(With)) {
	if len(names) == 0 {
		do(w)
		return
	}
	for _, v := range examples[names[0]] {
		w[names[0]] = v
		ways(names[1:], w, do)
	}
}

// What is said on the way of a message mostly has no fields, and costs nothing.
func TestAPlainTextCostsNothing(t *testing.T) {
	if n := testing.AllocsPerRun(100, func() { Text("stopped") }); n != 0 {
		t.Errorf("a text without fields allocates %v times", n)
	}
}

func TestATextThatIsNotThereOrLacksAValueIsAMistake(t *testing.T) {
	for name, say := range map[string]func(){
		"no such text": func() { Text("no such text") },
		"no values":    func() { Text("whoami") },
		"another":      func() { Text("deny_done", With{"Whom": "Ada"}) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: it is said all the same", name)
				}
			}()
			say()
		}()
	}
	if err := Error(core.Denied, "owner_only"); core.KindOf(err) != core.Denied || core.TextOf(err) != "Only the owner or an admin can do that." {
		t.Errorf("as an error it is %v", err)
	}
}

// The texts that go more than one way, each way.
func TestTextsThatGoSeveralWays(t *testing.T) {
	ask := With{"Caution": "", "Commands": "", "Tool": "Bash", "Kind": "run", "What": "ls -l", "TooLong": 0, "Change": "", "Block": "", "More": "", "Owner": false, "Name": "Ada \"A\"", "User": 7, "Trust": core.Sandboxed, "Within": "5 minutes"}
	but := func(w With, key string, v any) With {
		w = maps.Clone(w)
		w[key] = v
		return w
	}
	invitation := With{"People": 1, "Trust": core.Vault, "Lasts": "", "Until": "Friday, 2 January, 15:04 CET", "Link": "", "Code": "K7M2Q9XT"}
	group := With{"All": false, "Context": false, "Most": 0, "Per": "1m0s"}
	request := With{"Name": "Ada", "Group": false, "ID": "42", "Code": "K7M2Q9XT", "First": "hi"}
	line := With{"ID": "0a1b2c3d", "Title": "Bread", "Messages": 4, "Ago": "just now", "This": false, "Elsewhere": ""}
	used := With{"Model": "local/quote", "Calls": int64(3), "Tokens": int64(90), "Cost": "$0.0100", "Unpriced": int64(0)}
	state := With{"Trust": "vault", "Raised": false, "Auto": false}
	for _, c := range []struct {
		name string
		with With
		want string
	}{
		{"permission", ask, "Bash wants to run:\n\nls -l\n\nFor a guest, \"Ada \\\"A\\\"\" (user 7), at trust sandboxed. Without an answer within 5 minutes it is denied."},
		{"permission", but(but(ask, "Caution", "This command is not wholly understood: make is not on the list."), "Commands", "\n1. ls\n2. make"), "This command is not wholly understood: make is not on the list.\n\nBash wants to run:\n\nls -l\n\nThe commands in it:\n1. ls\n2. make\n\nFor a guest, \"Ada \\\"A\\\"\" (user 7), at trust sandboxed. Without an answer within 5 minutes it is denied."},
		{"permission", but(but(ask, "Kind", "read"), "Name", ""), "Bash wants to read ls -l\nFor a guest (user 7), at trust sandboxed. Without an answer within 5 minutes it is denied."},
		{"permission", but(but(but(but(ask, "Kind", "change"), "Change", "Lines added: 1, removed: 0."), "Block", "+ tea"), "More", "More."), "Bash wants to change ls -l\n\nLines added: 1, removed: 0.\n+ tea\nMore.\n\nFor a guest, \"Ada \\\"A\\\"\" (user 7), at trust sandboxed. Without an answer within 5 minutes it is denied."},
		{"change_more", With{"N": 1, "All": false}, "One more changed line: read it in the panel under Approvals."},
		{"permission", but(but(but(ask, "Kind", "change"), "TooLong", 9000), "Owner", true), "Bash wants to change something of 9000 characters: too long to be shown here. Read it in the panel under Approvals, and allow it there.\nFor the owner or an admin, \"Ada \\\"A\\\"\" (user 7), at trust sandboxed. Without an answer within 5 minutes it is denied."},
		{"invitation", invitation, "An invitation for one person at trust vault, until Friday, 2 January, 15:04 CET.\n\nTo use it, send me: `/pair K7M2Q9XT`"},
		{"invitation", but(but(but(invitation, "People", 5), "Lasts", "30 days"), "Link", "https://t.me/x"), "An invitation for 5 people at trust vault, for 30 days each, until Friday, 2 January, 15:04 CET.\n\nhttps://t.me/x\n\nor send me: `/pair K7M2Q9XT`"},
		{"group_enabled", group, "This group is enabled: mention me, or reply to me."},
		{"group_enabled", but(but(group, "Context", true), "Most", 20), "This group is enabled: mention me, or reply to me. Before I answer I read the latest messages. At most 20 answers in 1m0s."},
		{"group_enabled", but(group, "All", true), "This group is enabled: I answer every message."},
		{"request", request, "Ada wants to talk to this bot in a direct message.\nid 42, code K7M2Q9XT\nThey wrote:\nhi\n\nAfter approval I answer what they wrote."},
		{"request", but(but(but(request, "Name", ""), "Group", true), "First", ""), "Someone without a name wants to talk to this bot in a group.\nid 42, code K7M2Q9XT\n\nAfter approval I answer what they wrote."},
		{"sessions_line", line, "- `0a1b2c3d` Bread: 4 messages, just now"},
		{"sessions_line", but(line, "This", true), "- `0a1b2c3d` Bread: 4 messages, just now, this one"},
		{"sessions_line", but(line, "Elsewhere", "discord"), "- `0a1b2c3d` Bread: 4 messages, just now, on discord"},
		{"usage_line", used, "- `local/quote`: 3 calls, 90 tokens, $0.0100"},
		{"usage_line", but(used, "Unpriced", int64(1)), "- `local/quote`: 3 calls, 90 tokens, $0.0100 and 1 call without a known price"},
		{"usage_line", but(used, "Unpriced", int64(3)), "- `local/quote`: 3 calls, 90 tokens"},
		{"usage_left", With{"Whose": "bot", "Month": false, "Budget": "$2.00", "Left": ""}, "This bot's budget for today is $2.00; nothing is left."},
		{"usage_left", With{"Whose": "user", "Month": true, "Budget": "$2.00", "Left": "$1.00"}, "Your budget for this month is $2.00; $1.00 is left."},
		{"budget_used", With{"Whose": "user", "Month": true, "Budget": "200 tokens"}, "your budget for this month (200 tokens) is used up. It resets with the next month, UTC."},
		{"budget_used", With{"Whose": "user", "Month": false, "Budget": "200 tokens"}, "your budget for today (200 tokens) is used up. It resets at midnight UTC."},
		{"trust_state", state, "You have trust vault here. In this conversation tools ask you first; `/trust auto` lets them run without asking."},
		{"trust_state", but(state, "Auto", true), "You have trust vault here. In this conversation tools run without asking; `/trust ask` makes them ask you first."},
		{"trust_state", but(but(state, "Raised", true), "Trust", "full until 12:00 UTC"), "You have trust full until 12:00 UTC here. In this conversation tools ask you first; `/trust vault` ends trust full."},
		{"approve_done", With{"Who": "Ada", "Trust": core.Vault, "Until": "Friday, 2 January, 15:04 CET"}, "Approved Ada at trust vault, until Friday, 2 January, 15:04 CET."},
		{"request_decided", With{"Denied": true, "Blocked": true, "Revoked": false, "By": "operator via panel", "At": "12:00 UTC"}, "already blocked by operator via panel (12:00 UTC)"},
		{"request_decided", With{"Denied": true, "Blocked": false, "Revoked": false, "By": "operator via panel", "At": "Monday, 2 January, 12:00 UTC"}, "already denied by operator via panel (Monday, 2 January, 12:00 UTC)"},
		{"request_decided", With{"Denied": true, "Blocked": false, "Revoked": true, "By": "operator via panel", "At": "12:00 UTC"}, "already revoked by operator via panel (12:00 UTC)"},
		{"file_more", With{"N": 1}, "and 1 more file, which is not read"},
		{"file_more", With{"N": 5}, "and 5 more files, which are not read"},
		{"resumed", With{"Title": "", "Messages": 2}, "Continuing that conversation (2 messages)."},
		{"hours", With{"N": 1}, "1 hour"},
		{"days", With{"N": 7}, "7 days"},
	} {
		if got := Text(c.name, c.with); got != c.want {
			t.Errorf("%s with %v:\n%q, want\n%q", c.name, c.with, got, c.want)
		}
	}
}
