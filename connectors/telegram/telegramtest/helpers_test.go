package telegramtest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"gatehouse/connectors/telegram/telegramtest"
	"gatehouse/core"
	"gatehouse/core/coretest"
)

// reply is the platform's envelope as a bot decodes it.
type reply struct {
	OK          bool            `json:"ok"`
	Result      json.RawMessage `json:"result"`
	ErrorCode   int             `json:"error_code"`
	Description string          `json:"description"`
	Parameters  struct {
		RetryAfter int   `json:"retry_after"`
		MigrateTo  int64 `json:"migrate_to_chat_id"`
	} `json:"parameters"`
	status int
	header http.Header
}

// one is a world with one person who has written once, and a clock that stands still.
type one struct {
	*testing.T
	*telegramtest.Server
	clock *coretest.Clock
	ada   *telegramtest.User
	first telegramtest.Message
}

func world(t *testing.T, change ...func(*telegramtest.Options)) *one {
	t.Helper()
	clock := coretest.NewClock(time.Time{})
	opt := telegramtest.Options{Clock: clock}
	for _, f := range change {
		f(&opt)
	}
	s := telegramtest.New(opt)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		http.DefaultClient.CloseIdleConnections()
	})
	ada := s.NewUser("Ada")
	return &one{t, s, clock, ada, ada.Send("hello")}
}

func noFlood(o *telegramtest.Options)   { o.FloodOff = true }
func realClock(o *telegramtest.Options) { o.Clock = core.System{} }

// call sends parameters as JSON and expects an envelope.
func (o *one) call(method string, p map[string]any) reply {
	o.Helper()
	return o.callAs(o.Token(), method, p)
}

func (o *one) callAs(token, method string, p map[string]any) reply {
	o.Helper()
	r, err := o.try(context.Background(), token, method, p)
	if err != nil {
		o.Fatalf("%s: %v", method, err)
	}
	return r
}

func (o *one) try(ctx context.Context, token, method string, p map[string]any) (reply, error) {
	body, err := json.Marshal(p)
	if err != nil {
		return reply{}, err
	}
	req, err := http.NewRequestWithContext(ctx, "POST", o.URL()+"/bot"+token+"/"+method, bytes.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		return reply{}, err
	}
	r := reply{status: res.StatusCode, header: res.Header}
	if err := json.Unmarshal(b, &r); err != nil {
		return r, fmt.Errorf("%d %s: %w", res.StatusCode, b, err)
	}
	return r, nil
}

// must expects success and decodes the result.
func (o *one) must(method string, p map[string]any, into any) {
	o.Helper()
	r := o.call(method, p)
	if !r.OK {
		o.Fatalf("%s: %d %s", method, r.ErrorCode, r.Description)
	}
	if into != nil {
		if err := json.Unmarshal(r.Result, into); err != nil {
			o.Fatalf("%s: %v in %s", method, err, r.Result)
		}
	}
}

// refused expects an error with the platform's own code and words.
func (o *one) refused(method string, p map[string]any, code int, text string) reply {
	o.Helper()
	r := o.call(method, p)
	if r.OK || r.ErrorCode != code || r.status != code || r.Description != text {
		o.Errorf("%s %v:\n got %d %q (HTTP %d)\nwant %d %q", method, p, r.ErrorCode, r.Description, r.status, code, text)
	}
	return r
}

type m = map[string]any

type sent struct {
	MessageID int              `json:"message_id"`
	ThreadID  int              `json:"message_thread_id"`
	Text      string           `json:"text"`
	Entities  []map[string]any `json:"entities"`
	ReplyTo   *sent            `json:"reply_to_message"`
	EditDate  int64            `json:"edit_date"`
}

type update struct {
	ID      int64           `json:"update_id"`
	Message *sent           `json:"message"`
	Edited  *sent           `json:"edited_message"`
	Member  json.RawMessage `json:"my_chat_member"`
	React   json.RawMessage `json:"message_reaction"`
	Query   *struct {
		ID   string `json:"id"`
		Data string `json:"data"`
	} `json:"callback_query"`
}

// updates polls without waiting. Polls of one offset within half a second get
// one update at most, so the clock moves first.
func (o *one) updates(p m) []update {
	o.Helper()
	o.clock.Advance(4 * time.Second)
	if p == nil {
		p = m{}
	}
	var us []update
	o.must("getUpdates", p, &us)
	return us
}

func form(method string, o *one, values url.Values) reply {
	res, err := http.Post(o.URL()+"/bot"+o.Token()+"/"+method, "application/x-www-form-urlencoded", strings.NewReader(values.Encode()))
	if err != nil {
		o.Fatal(err)
	}
	defer res.Body.Close()
	r := reply{status: res.StatusCode}
	if err := json.NewDecoder(res.Body).Decode(&r); err != nil {
		o.Fatal(err)
	}
	return r
}
