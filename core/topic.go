package core

// A Topic names what changed: a Bus rings it, and open pages of the panel and the
// permission stream read again what they show of it.
type Topic string

// The topics.
const (
	TopicAccounts  Topic = "accounts"  // sessions ended, or an account may do less
	TopicApprovals Topic = "approvals" // an ask of a tool call or its grant was opened, settled or withdrawn
	TopicBots      Topic = "bots"      // a bot was added, changed its state or was removed
	TopicChats     Topic = "chats"     // a run began, or it or its attempt ended
	TopicDaily     Topic = "daily"     // a run of a daily agent began or ended
	TopicJobs      Topic = "jobs"      // a backup, export, import or restore ended or changed its state
	TopicPairing   Topic = "pairing"   // a pairing request was opened or decided
	TopicPeople    Topic = "people"    // access, names or invitations of people changed
	TopicQueue     Topic = "queue"     // the queue has something for the operator: a dead letter, a send of unknown outcome
)

// Topics returns every topic.
func Topics() []Topic {
	return []Topic{TopicAccounts, TopicApprovals, TopicBots, TopicChats, TopicDaily, TopicJobs, TopicPairing, TopicPeople, TopicQueue}
}
