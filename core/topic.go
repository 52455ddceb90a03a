package core

// A Topic names what changed: a Bus rings it, and open pages of the panel and the
// permission stream read again what they show of it. It is a number, so that no text is taken
// for one.
type Topic uint8

// The topics.
const (
	TopicAccounts  Topic = iota + 1 // sessions ended, or an account may do less
	TopicApprovals                  // an ask of a tool call or its grant was opened, settled or withdrawn
	TopicBots                       // a bot was added, changed its state or was removed
	TopicChats                      // a run began, or it or its attempt ended
	TopicDaily                      // a run of a daily agent began or ended
	TopicJobs                       // a backup, export, import or restore ended or changed its state
	TopicPairing                    // a pairing request was opened or decided
	TopicPeople                     // access, names or invitations of people changed
	TopicQueue                      // the queue has something for the operator: a dead letter, a send of unknown outcome
)

var topics = [...]string{TopicAccounts: "accounts", TopicApprovals: "approvals", TopicBots: "bots", TopicChats: "chats", TopicDaily: "daily",
	TopicJobs: "jobs", TopicPairing: "pairing", TopicPeople: "people", TopicQueue: "queue"}

// Topics returns every topic.
func Topics() (all []Topic) {
	for t := TopicAccounts; int(t) < len(topics); t++ {
		all = append(all, t)
	}
	return all
}

// String returns the name of a topic, as pages have it.
func (t Topic) String() string { return topics[t] }
