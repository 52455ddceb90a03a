package inbound

// serviceAccounts are accounts of Telegram itself, as its clients treat them (the
// second of a pair is the test servers'): service notifications, anonymous group
// admins, channels that write in groups, replies to comments, verification codes,
// spam reports, and older notification accounts. Their messages come from no one
// person.
var serviceAccounts = []int64{
	777000, 42777, 333000,
	1087968824, 552888,
	136817688, 936174,
	1271266957, 708513,
	489000,
	5434988373, 2200583762,
	2666000,
}
