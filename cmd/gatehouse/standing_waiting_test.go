package main

import (
	"strings"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
)

// waits stores a reply to the chat that is not due yet.
func (s *script) waits(to core.Address, text string) {
	s.t.Helper()
	ctx := s.t.Context()
	err := s.w.app.db.Tx(ctx, func(tx *store.Tx) error {
		if err := s.w.app.outbox.Post(ctx, tx, core.Reply{Address: to, Key: "send:" + text, Parts: []core.Part{{Text: text}}}); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `UPDATE outbox SET not_before = $1 WHERE key = $2`, core.Stamp(tx.Time().Add(time.Hour)), "send:"+text)
		return err
	})
	if err != nil {
		s.fatalf("%v", err)
	}
}

// addressOf returns the address of the bot's only chat of a scope with others than the owner.
func (s *script) addressOf(query string) core.Address {
	s.t.Helper()
	var row struct {
		Chat  string `db:"chat"`
		Place string `db:"place"`
	}
	if err := s.w.app.db.Get(s.t.Context(), &row, query, s.platform); err != nil {
		s.fatalf("%v", err)
	}
	return core.Address{Bot: s.platform, Chat: row.Chat, Place: row.Place}
}

func (s *script) failed(text string) bool {
	return s.w.count(`SELECT count(*) FROM outbox WHERE key = $1 AND state = 'failed' AND error LIKE 'the chat is closed to the bot: %'`, "send:"+text) == 1
}

// A group that the bot was removed from is disabled: whoever adds it again must not get what
// waited for that group, whose members may be others by now.
func TestWhatWaitedForAGroupIsNotSentWhenAnyoneAddsTheBotAgain(t *testing.T) {
	t.Parallel()
	for _, platform := range []string{"telegram", "discord"} {
		t.Run(platform, func(t *testing.T) {
			t.Parallel()
			s := newScript(t, platform, nil)
			for _, step := range []string{"olga owns", "ada appears", "group Garden: olga ada", "olga in Garden: /enable all", "bot in Garden: I answer every message",
				"ada in Garden: hello", "bot in Garden: " + fakeSays, "quiet"} {
				s.step(step)
			}
			s.waits(s.addressOf(`SELECT chat, place FROM chats WHERE place <> '' AND bot = $1`), "a late answer")
			s.step("ada removes the bot from Garden")
			s.w.until("the answer is given up", func() bool { return s.failed("a late answer") })
			s.step("ada adds the bot to Garden")
			s.step("ada in Garden: " + s.scenes[platform].called() + " hello again?") // stored behind it
			s.step("bot silent in Garden")
			if !s.failed("a late answer") {
				t.Error("the answer is not listed as undelivered")
			}
			s.step("olga in Garden: /enable")
			s.step("bot in Garden: I answer every message")
			s.step("bot silent in Garden")
		})
	}
}

// Who unblocks the bot gets what waited if they still have access.
func TestWhatWaitedForAPersonIsSentAfterABlockWhileTheyHaveAccess(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lose func(s *script) error
		sent bool
	}{
		"kept": {func(*script) error { return nil }, true},
		"revoked": {func(s *script) error {
			_, err := s.w.app.pairing.People.Revoke(s.t.Context(), "telegram", s.ids["ada@telegram"], cli)
			return err
		}, false},
		"blocked": {func(s *script) error {
			return s.w.app.pairing.People.BlockUser(s.t.Context(), "*", "telegram", s.ids["ada@telegram"], cli)
		}, false},
		"expired": {func(s *script) error {
			s.w.sql(`UPDATE access SET expires_at = '2026-01-01T00:00:00.000Z' WHERE user_id <> 1`)
			return nil
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScript(t, "telegram", nil)
			for _, step := range []string{"olga owns", "ada joins", "quiet"} {
				s.step(step)
			}
			s.waits(s.addressOf(`SELECT chat, '' AS place FROM access WHERE user_id <> 1 AND bot = $1`), "a late answer")
			s.step("ada blocks the bot")
			s.w.until("the answer is given up", func() bool { return s.failed("a late answer") })
			if err := c.lose(s); err != nil {
				t.Fatal(err)
			}
			s.step("ada unblocks the bot")
			s.step("olga: /status") // answered behind it
			s.step("quiet")
			arrived := false
			for _, l := range s.scenes["telegram"].read("dm:ada") {
				arrived = arrived || l.bot && strings.Contains(l.text, "a late answer")
			}
			if arrived != c.sent || s.failed("a late answer") == c.sent {
				t.Errorf("arrived: %v, want %v", arrived, c.sent)
			}
		})
	}
}
