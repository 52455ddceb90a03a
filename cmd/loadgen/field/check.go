package field

import (
	"context"
	"database/sql"
	"path/filepath"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
	_ "github.com/mattn/go-sqlite3"    // the driver "sqlite3"

	"gatehouse/cmd/loadgen/crowd"
	"gatehouse/cmd/loadgen/report"
)

// CountAnswers judges by what users see alone: how many answers each chat has.
func (f *Field) CountAnswers() report.Verdict {
	var v report.Verdict
	for _, p := range f.Platforms {
		for _, c := range p.Chats {
			asked, got := 0, 0
			for _, m := range p.History(c.ID) {
				if m.Bot {
					got++
				} else {
					asked++
				}
			}
			v.Add(report.Verdict{Messages: asked, Answers: got, Lost: max(0, asked-got), Doubled: max(0, got-asked)})
		}
	}
	return v
}

// Database returns where the gateway's database is below its directory.
func Database(dir string) string { return filepath.Join(dir, "vault", "Chat", "sessions.db") }

// Check follows every message of every chat to the answer that is visible
// there, through the database of the gateway, which must have ended: the
// message's row names its run, the run's reply names the platform's message.
// An answer counts as the message's own only when the chat shows it. server is the
// address of a database on a PostgreSQL server; with "" it is the file below dir.
func (f *Field) Check(ctx context.Context, dir, server string) (report.Judgement, error) {
	driver, source := "sqlite3", "file:"+Database(dir)+"?mode=ro"
	if server != "" {
		driver, source = "pgx", server
	}
	db, err := sql.Open(driver, source)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	rows, err := db.QueryContext(ctx, `SELECT i.bot, i.chat, i.message_id, coalesce(o.platform_message_id, '')
		FROM inbox i LEFT JOIN outbox o ON o.key = 'run:' || i.run AND o.state = 'sent'
		WHERE i.kind = 'message' AND i.sender <> 'filled'`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	answers := map[string]map[string][]string{} // chat → message → answers
	for rows.Next() {
		var bot, chat, message, answer string
		if err := rows.Scan(&bot, &chat, &message, &answer); err != nil {
			return nil, err
		}
		key := KeyOf(bot, chat)
		if answers[key] == nil {
			answers[key] = map[string][]string{}
		}
		answers[key][message] = append(answers[key][message], answer)
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	found := report.Judgement{}
	for _, p := range f.Platforms {
		for _, c := range p.Chats {
			found.Add(p.Name, checkChat(p.History(c.ID), answers[KeyOf(p.Name, c.ID)]))
		}
	}
	return found, nil
}

// checkChat judges one chat's history.
func checkChat(history []crowd.Message, answers map[string][]string) report.Verdict {
	var v report.Verdict
	place := map[string]int{} // of the bot's messages, from 1
	for i, m := range history {
		if m.Bot {
			v.Answers++
			place[m.ID] = i + 1
		}
	}
	newest, used := 0, 0
	for _, m := range history {
		if m.Bot {
			continue
		}
		v.Messages++
		found := 0
		for _, id := range answers[m.ID] {
			at := place[id]
			if at == 0 {
				continue
			}
			found++
			if at < newest {
				v.Disorder++
			}
			newest = max(newest, at)
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
