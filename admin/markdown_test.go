package admin_test

import (
	"net/url"
	"strings"
	"testing"

	"gatehouse/core"
	"gatehouse/core/session"
	"gatehouse/core/transcript"
)

const longLine = "for plot in $(seq 1 14); do printf '%s\\n' \"plot $plot: two rows of beans, one of kale, and the seed potatoes by the gate\"; done"

// An answer with everything that Markdown has here, and with what it must not become.
const richAnswer = "# The plan\n\nThe meeting is on **Thursday**, see [the notes](https://allotment.example/notes?a=1&b=2) and [here](javascript:alert(1)).\n\n" +
	"## Who brings what\n\n| Person | Brings | Kilos |\n|:--|:--|--:|\n| Ines | seed potatoes | 12.5 |\n| Matteo | *kale* and `beans` | 3 |\n\n" +
	"1. Dig\n   - the far bed\n   - the bed by the gate\n2. Sow\n\n- [x] Order the compost\n- [ ] Mend the shed\n\n> Quoted, ~~not~~ meant.\n\n```sh\n" + longLine + "\necho \"<b>done</b>\"\n```\n\n" +
	"![The shed](https://allotment.example/shed.png) <script>alert(1)</script><img src=x onerror=alert(1)>\n\n---\nThe end."

// rich makes a conversation of the operator with an answer in Markdown.
func (w *world) rich() (id string) {
	return w.talk(session.Ref{Address: core.Address{Bot: core.APIBot, Chat: "rich"}, User: core.Operator, Trust: core.Full, Options: &core.Options{}}, "The plan", "rr",
		transcript.Message{Role: "user", Blocks: []core.Block{text("What is the plan?\nIn **bold**, please.")}},
		transcript.Message{Role: "assistant", Model: "anthropic/claude-sonnet-4-5", Blocks: []core.Block{{Type: "thinking", Text: "A *list* fits."}, text(richAnswer)}})
}

func TestATranscriptRendersMarkdownAndNothingElse(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	s.world.full()
	a := s.get("/admin/chats/" + s.world.rich())
	a.has(t, "<h3>The plan</h3>", "<h4>Who brings what</h4>", "In **bold**, please.", "A <em>list</em> fits.",
		`<a href="https://allotment.example/notes?a=1&amp;b=2" title="https://allotment.example/notes?a=1&amp;b=2" target="_blank" rel="noopener noreferrer nofollow">the notes</a>`,
		"here (javascript:alert(1))", `<th class="right">Kilos</th>`, "echo &#34;&lt;b&gt;done&lt;/b&gt;&#34;</code></pre>", ` rel="noopener noreferrer nofollow">The shed</a>`,
		"&lt;script&gt;alert(1)&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;")
	a.lacks(t, "shed.png\">\n", `src="https://allotment.example`, "<img src=x", "<script>alert")
	if policy := a.header.Get("Content-Security-Policy"); !strings.Contains(policy, "script-src 'self'; style-src 'self';") || !strings.Contains(policy, "require-trusted-types-for 'script'") {
		t.Errorf("the policy is %q", policy)
	}
}

func TestAgentFilesAreShownRenderedOrAsSource(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	s.world.full()
	s.world.file(".parachute/agents/steps.md", "---\ndescription: Goes step by step\n---\n\n# Steps\n\n1. **Read** <script>\n2. Write\n")
	s.get("/admin/agents").has(t, `<a href="/admin/agents/edit?file=.parachute%2Fagents%2Fsteps.md&amp;view=rendered"><bdi>steps</bdi></a>`)
	const path = "/admin/agents/edit?file=.parachute%2Fagents%2Fsteps.md"
	a := s.get(path + "&view=rendered")
	a.has(t, `id="view-rendered" autocomplete="off" checked>`, `<p class="kind">yaml<`, "description: Goes step by step</code></pre>", "<h3>Steps</h3>", "<li><strong>Read</strong> &lt;script&gt;</li>", "</textarea>")
	a.lacks(t, `id="view-source" autocomplete="off" checked>`)
	s.get(path).has(t, `id="view-source" autocomplete="off" checked>`, "<h3>Steps</h3>")
	a = s.postForm("/admin/agents/edit", url.Values{"file": {".parachute/agents/steps.md"}, "version": {"x"}, "text": {"---\ndescription: d\n---\n# Other steps\n"}, "do": {"preview"}})
	a.has(t, "<h3>Other steps</h3>", "The text as of the last preview.")
	s.get("/admin/agents/edit?file=.parachute%2Fworkspaces%2Fgarden%2Fconfig.yaml").lacks(t, "view-rendered") // no Markdown
}
