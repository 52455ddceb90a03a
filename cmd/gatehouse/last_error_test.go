package main

import (
	"fmt"
	"strings"
	"testing"

	"gatehouse/core/llm/llmtest"
)

func TestAFailedTurnIsTheLastErrorOfItsSessionUntilOneIsAnswered(t *testing.T) {
	t.Parallel()
	w, model := newModelWorld(t, nil)
	model.Script(llmtest.Refuse(401, "Incorrect API key provided.", "invalid_request_error", "invalid_api_key"))
	_, es := w.chatEvents(map[string]any{"message": "hello"}, nil)
	var id string
	for _, e := range es {
		if e.Type == "session" {
			id, _ = e.Data["id"].(string)
		}
	}
	_, m, _ := w.asked("GET", "/api/chat/"+id, nil, nil)
	last, _ := m["last_error"].(map[string]any)
	if last["kind"] != "auth" || last["setting"] != "GATEHOUSE_OPENAI_API_KEY" || !strings.Contains(fmt.Sprint(last["what_to_do"]), "Replace the provider’s key") || !strings.Contains(fmt.Sprint(last["provider_message"]), "401") {
		t.Errorf("last_error is %v", last)
	}
	w.chatEvents(map[string]any{"message": "again", "session_id": id}, nil)
	if _, m, _ = w.asked("GET", "/api/chat/"+id, nil, nil); m["last_error"] != nil {
		t.Errorf("after an answer last_error is %v", m["last_error"])
	}
}

func TestTheStreamOfARefusedTurnBeginsWithItsSession(t *testing.T) {
	t.Parallel()
	w, model := newModelWorld(t, nil)
	model.Script(llmtest.Refuse(401, "Incorrect API key provided.", "invalid_request_error", "invalid_api_key"))
	for name, body := range map[string]map[string]any{
		"before the run": {"message": "hello", "working_directory": "/etc"},
		"by the run":     {"message": "hello"},
	} {
		_, es := w.chatEvents(body, nil)
		got := types(es)
		if len(got) < 3 || got[0] != "session" || got[len(got)-2] != "error" || got[len(got)-1] != "message_stop" {
			t.Errorf("refused %s: %v", name, got)
		}
	}
}
