-- +goose Up
-- --------------------------------------------------------------- core/project
-- Named groups of a person's conversations (sessions.project_id).
CREATE TABLE projects (
    project_id TEXT PRIMARY KEY,
    user_id    INTEGER NOT NULL,
    name       TEXT NOT NULL,
    name_key   TEXT NOT NULL,               -- the name, folded: one project of that name for each person
    created_at TEXT NOT NULL,
    UNIQUE (user_id, name_key)
);

-- The project that new conversations of a chat join.
CREATE TABLE project_chats (
    bot        TEXT NOT NULL,
    chat       TEXT NOT NULL,
    project_id TEXT NOT NULL REFERENCES projects(project_id) ON DELETE CASCADE,
    PRIMARY KEY (bot, chat)
);
CREATE INDEX project_chats_project ON project_chats(project_id);
CREATE INDEX idx_conv_project ON sessions(project_id) WHERE project_id IS NOT NULL;

-- +goose Down
SELECT 'this is not taken back: restore the copy kept beside the database';
