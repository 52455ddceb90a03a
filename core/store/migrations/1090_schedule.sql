-- +goose Up
-- --------------------------------------------------------------- core/schedule
-- Up to when the times of each daily agent were handled.
CREATE TABLE schedule_agents (
    name  TEXT PRIMARY KEY,
    rule  TEXT NOT NULL,                  -- as the file had it, with its zone: times count from a change on
    since TEXT NOT NULL
);
-- The runs of daily agents. The first of a date is the only one that the schedule starts.
CREATE TABLE schedule_runs (
    agent   TEXT NOT NULL,
    date    TEXT NOT NULL,                -- 2026-01-28, in the agent's time zone
    n       INTEGER NOT NULL,             -- 1, 2 …: of the date
    run     TEXT NOT NULL DEFAULT '',     -- runs.id
    session TEXT NOT NULL DEFAULT '',
    cause   TEXT NOT NULL,                -- schedule, missed, or who started it
    result  TEXT NOT NULL DEFAULT '',     -- completed, completed_no_output, skipped, error; '' while it runs
    error   TEXT NOT NULL DEFAULT '',
    output  TEXT NOT NULL DEFAULT '',     -- the file that it has written, in the vault
    model   TEXT NOT NULL DEFAULT '',
    due     TEXT NOT NULL,
    created TEXT NOT NULL,
    ended   TEXT NOT NULL DEFAULT '',
    noted   INTEGER NOT NULL DEFAULT 0,   -- its end is in the agent's state file
    PRIMARY KEY (agent, date, n)
);
CREATE INDEX schedule_runs_open ON schedule_runs (result) WHERE result = '';
CREATE INDEX schedule_runs_run ON schedule_runs (run);
CREATE INDEX schedule_runs_unnoted ON schedule_runs (agent) WHERE noted = 0 AND result <> '';

-- +goose Down
SELECT 'this is not taken back: restore the copy kept beside the database';
