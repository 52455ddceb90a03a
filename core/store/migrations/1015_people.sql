-- +goose Up
-- --------------------------------------------------------------------- pairing
-- The access that a block took, as JSON, for as long as the block can be undone.
ALTER TABLE blocks ADD COLUMN took TEXT NOT NULL DEFAULT '';

-- ------------------------------------------------------------------ core/usage
-- What one person may use in a day, instead of the budget for everybody.
CREATE TABLE user_budgets (
    user_id   INTEGER PRIMARY KEY,
    tokens    INTEGER NOT NULL DEFAULT 0,
    micro_usd INTEGER NOT NULL DEFAULT 0    -- both 0: no bound
);

-- +goose Down
SELECT 'this is not taken back: restore the copy kept beside the database';
