package core

import (
	"strconv"
	"strings"
)

// GuestsDir is the directory of the vault that holds the directories of guests.
const GuestsDir = "Guests"

// GuestDir returns the directory of a guest, relative to the vault.
func GuestDir(user int64) string { return GuestsDir + "/" + strconv.FormatInt(user, 10) }

// GuestOf returns the guest in whose directory a file of the vault is, or whose directory it is;
// 0 for none.
func GuestOf(name string) int64 {
	first, rest, _ := strings.Cut(name, "/")
	id, _, _ := strings.Cut(rest, "/")
	user, err := strconv.ParseInt(id, 10, 64)
	if err != nil || user <= 0 || GuestDir(user) != first+"/"+id {
		return 0
	}
	return user
}
