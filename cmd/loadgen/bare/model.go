package bare

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// text is as long as the answer of local/quote in an empty vault.
const text = "I found nothing about that in the notes that I may read for you. Try other words, or ask about something else."

// A Model is a chat completions API whose stream becomes the answers.
type Model struct {
	url    string
	client *http.Client
}

// NewModel asks the API at url; "" asks none, all answers are one text then.
func NewModel(url string) *Model { return &Model{url, client(2000)} }

// question is the same each time: the bot knows no history.
const question = `{"model":"load","stream":true,"messages":[{"role":"user","content":"Could you please tell me where we stand with this, and what comes next?"}]}`

func (m *Model) answer(ctx context.Context) (string, error) {
	if m.url == "" {
		return text, nil
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, m.url+"/chat/completions", strings.NewReader(question))
	if err != nil {
		return "", errors.New("the model's address cannot be read")
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := m.client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("the model answered %s", resp.Status)
	}
	var said strings.Builder
	done := false
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if done = done || data == "[DONE]"; !ok || done {
			continue
		}
		var c struct {
			Choices []struct {
				Delta struct {
					Content string `json:"content"`
				} `json:"delta"`
			} `json:"choices"`
		}
		if err := json.Unmarshal([]byte(data), &c); err != nil {
			return "", err
		}
		for _, choice := range c.Choices {
			said.WriteString(choice.Delta.Content)
		}
	}
	if !done {
		return "", errors.New("the model's stream was cut")
	}
	return said.String(), nil
}
