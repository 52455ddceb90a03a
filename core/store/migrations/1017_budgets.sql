-- +goose Up
-- ------------------------------------------------------------------ core/usage
-- What one person may use in a day, instead of the budget for everybody, and in
-- a calendar month, beside it. Both numbers 0: no bound.
CREATE TABLE budgets (
    scope     TEXT NOT NULL,                -- user
    id        TEXT NOT NULL,                -- of the person
    period    TEXT NOT NULL,                -- day, month
    tokens    INTEGER NOT NULL DEFAULT 0,
    micro_usd INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (scope, id, period)
);
INSERT INTO budgets (scope, id, period, tokens, micro_usd) SELECT 'user', user_id || '', 'day', tokens, micro_usd FROM user_budgets;
DROP TABLE user_budgets;

-- +goose Down
SELECT 'this is not taken back: restore the copy kept beside the database';
