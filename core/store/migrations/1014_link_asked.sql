-- +goose Up
-- --------------------------------------------------------------------- pairing
-- Who typed the code and was asked whether the accounts are theirs: a hash of
-- the account, '' for nobody yet.
ALTER TABLE link_codes ADD COLUMN asked TEXT NOT NULL DEFAULT '';
