package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gatehouse/configs"
	"gatehouse/core/llm/llmtest"
)

// TestOfficialOpenAIClientsWorkUnchanged runs where .ci/clients has fetched them:
// GATEHOUSE_TEST_OPENAI_GO is the built test of web/openai/clienttest,
// GATEHOUSE_TEST_OPENAI_NODE the folder with Node's client.
func TestOfficialOpenAIClientsWorkUnchanged(t *testing.T) {
	node, err := filepath.Abs("../../web/openai/clienttest/client.mjs")
	if err != nil {
		t.Fatal(err)
	}
	goTest, nodeDir := os.Getenv("GATEHOUSE_TEST_OPENAI_GO"), os.Getenv("GATEHOUSE_TEST_OPENAI_NODE")
	if goTest == "" && nodeDir == "" {
		t.Skip("no clients here: make test-clients fetches them")
	}
	for name, c := range map[string]struct {
		with    string
		command []string
	}{
		"Go": {goTest, []string{goTest, "-test.v"}}, "Node": {nodeDir, []string{"node", node}},
	} {
		t.Run(name, func(t *testing.T) {
			if c.with == "" {
				t.Skip("SKIPPED: this client is not here")
			}
			visited(t, c.command, "OPENAI_TEST_NODE="+nodeDir)
		})
	}
}

// TestTheVercelSDKAndLangChainWorkUnchanged runs where .ci/clients has fetched them:
// GATEHOUSE_TEST_OPENAI_AI and GATEHOUSE_TEST_OPENAI_LANGCHAIN are their folders.
func TestTheVercelSDKAndLangChainWorkUnchanged(t *testing.T) {
	for _, name := range []string{"ai", "langchain"} {
		t.Run(name, func(t *testing.T) {
			dir := os.Getenv("GATEHOUSE_TEST_OPENAI_" + strings.ToUpper(name))
			if dir == "" {
				t.Skip("SKIPPED: this client is not here: make test-clients fetches it")
			}
			program, err := filepath.Abs("../../web/openai/clienttest/" + name + ".mjs")
			if err != nil {
				t.Fatal(err)
			}
			w, model := newModelWorld(t, nil)
			model.Script(llmtest.Say("Hello Ada."), llmtest.Say("You are", " Ada."), llmtest.Say("Ada it is."), llmtest.Reply{Text: []string{"Half of "}, Cut: true})
			cmd := exec.CommandContext(t.Context(), "node", program)
			cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "NO_PROXY=127.0.0.1", "OPENAI_TEST_URL=http://" + w.cfg.Addr,
				"OPENAI_TEST_KEY=" + w.key, "OPENAI_TEST_MODEL=" + fakeModel, "OPENAI_TEST_NODE=" + dir, "AI_SDK_LOG_WARNINGS=false"}
			out, err := cmd.CombinedOutput()
			t.Logf("%s", out)
			if err != nil {
				t.Fatal(err)
			}
			for n := 1; n <= 2; n++ {
				if sent := sentTo(t, model, n); !strings.Contains(sent, "I am Ada.") || !strings.Contains(sent, "Hello Ada.") || !strings.Contains(sent, "Who am I?") {
					t.Errorf("the model was sent %s", sent)
				}
			}
		})
	}
}

// visited lets a client go through its steps, for which the model's answers
// stand ready in the same order. The client hangs up in the last one.
func visited(t *testing.T, command []string, env ...string) {
	release := make(chan struct{})
	close(release)
	url := stenographer(t, release)
	w, model := newModelWorld(t, func(c *configs.Config) { c.TranscribeURL = url })
	recording := filepath.Join(t.TempDir(), "speech.wav")
	if err := os.WriteFile(recording, sentences(t), 0o600); err != nil {
		t.Fatal(err)
	}
	replies := []llmtest.Reply{
		llmtest.Say(fakeSays), llmtest.Say(fakeSays), llmtest.Say(fakeSays), // whole, stream, conversation
		llmtest.Limited("3600"), llmtest.Refuse(401, "Incorrect API key provided.", "invalid_request_error", "invalid_api_key"),
		{Text: []string{"Half of "}, Cut: true},
		llmtest.Say(fakeSays), llmtest.Say(fakeSays), llmtest.Say(fakeSays), llmtest.Say(fakeSays), // responses: whole, stream, in the background, repeated
		{Text: []string{"Half of "}, Cut: true}, {Text: []string{"Begun"}, Hang: true},
	}
	model.Script(replies...)
	cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "NO_PROXY=127.0.0.1", "OPENAI_TEST_URL=http://" + w.cfg.Addr,
		"OPENAI_TEST_KEY=" + w.key, "OPENAI_TEST_MODEL=" + fakeModel, "OPENAI_TEST_SAYS=" + fakeSays, "OPENAI_TEST_SPEECH=" + recording}, env...)
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Fatal(err)
	}
	w.until("the run that the client left is stopped", func() bool { return w.count(`SELECT count(*) FROM runs WHERE state = 'running'`) == 0 })
	if n := w.count(`SELECT count(*) FROM runs WHERE state = 'aborted'`); n != 1 || model.Total() != len(replies) {
		t.Errorf("%d runs aborted, want 1; %d calls of the model, want %d: what is final was tried again", n, model.Total(), len(replies))
	}
}
