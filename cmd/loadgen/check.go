package main

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"strconv"

	_ "github.com/mattn/go-sqlite3" // the driver "sqlite3"
)

// A verdict counts what must not happen.
type verdict struct {
	Messages int `json:"messages"` // sent by people
	Answers  int `json:"answers"`  // visible in their chats
	Lost     int `json:"lost"`
	Doubled  int `json:"doubled"`
	Disorder int `json:"out_of_order"`
}

func (v verdict) bad() bool { return v.Lost+v.Doubled+v.Disorder > 0 }

func (v *verdict) add(o verdict) {
	v.Messages += o.Messages
	v.Answers += o.Answers
	v.Lost += o.Lost
	v.Doubled += o.Doubled
	v.Disorder += o.Disorder
}

// countAnswers judges by what people see alone: how many answers each chat has.
func (f *field) countAnswers() verdict {
	var v verdict
	for _, u := range f.users {
		asked, got := 0, 0
		for _, m := range f.sim.History(u.DM()) {
			if m.FromBot() {
				got++
			} else {
				asked++
			}
		}
		v.add(verdict{Messages: asked, Answers: got, Lost: max(0, asked-got), Doubled: max(0, got-asked)})
	}
	return v
}

func databaseOf(dir string) string { return filepath.Join(dir, "vault", "Chat", "sessions.db") }

// check follows every message of every chat to the answer that is visible
// there, through the database of the gateway, which must have ended: the
// message's row names its run, the run's reply names the platform's message.
// An answer counts as the message's own only when the chat shows it.
func (f *field) check(ctx context.Context, dir string) (verdict, error) {
	db, err := sql.Open("sqlite3", "file:"+databaseOf(dir)+"?mode=ro")
	if err != nil {
		return verdict{}, err
	}
	defer db.Close()
	rows, err := db.QueryContext(ctx, `SELECT i.chat, i.message_id, coalesce(o.platform_message_id, '')
		FROM inbox i LEFT JOIN outbox o ON o.key = 'run:' || i.run AND o.state = 'sent'
		WHERE i.kind = 'message' AND i.bot = 'telegram' AND i.sender <> 'filled'`)
	if err != nil {
		return verdict{}, err
	}
	defer rows.Close()
	answers := map[string]map[int][]int{} // chat → message → answers
	for rows.Next() {
		var chat, message, answer string
		if err := rows.Scan(&chat, &message, &answer); err != nil {
			return verdict{}, err
		}
		m, _ := strconv.Atoi(message)
		a, _ := strconv.Atoi(answer)
		if answers[chat] == nil {
			answers[chat] = map[int][]int{}
		}
		answers[chat][m] = append(answers[chat][m], a)
	}
	if err := rows.Err(); err != nil {
		return verdict{}, err
	}
	var v verdict
	for _, u := range f.users {
		v.add(f.checkChat(u.ID(), answers[fmt.Sprint(u.ID())]))
	}
	return v, nil
}

func (f *field) checkChat(chat int64, answers map[int][]int) verdict {
	u := f.sim.User(chat)
	var v verdict
	visible := map[int]bool{}
	history := f.sim.History(u.DM())
	for _, m := range history {
		if m.FromBot() {
			v.Answers++
			visible[m.ID] = true
		}
	}
	newest, used := 0, 0
	for _, m := range history {
		if m.FromBot() {
			continue
		}
		v.Messages++
		found := 0
		for _, a := range answers[m.ID] {
			if visible[a] {
				found++
				if a < newest {
					v.Disorder++
				}
				newest = max(newest, a)
			}
		}
		if found == 0 {
			v.Lost++
		}
		used += found
		v.Doubled += max(0, found-1)
	}
	v.Doubled += max(0, v.Answers-used) // answers that belong to no message
	return v
}
