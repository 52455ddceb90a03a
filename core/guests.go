package core

import "strconv"

// GuestsDir is the directory of the vault that holds the directories of guests.
const GuestsDir = "Guests"

// GuestDir returns the directory of a guest, relative to the vault.
func GuestDir(user int64) string { return GuestsDir + "/" + strconv.FormatInt(user, 10) }
