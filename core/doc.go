// Package core holds the words that cross package borders, and nothing else.
// It imports only the standard library, and everything may import it.
//
// # A tour, bottom-up
//
//   - core: Address, Inbound, Reply, Part, Event, Trust, Error, Clock.
//   - core/texts: everything that people in chat read, in templates.
//   - core/store: opens the database, groups commits, migrates, audits.
//   - core/vault: the folder of plain files through os.Root; transcripts.
//   - core/queue: inbox, lanes, leases, outbox, cursors (docs/delivery.md).
//   - core/bus: live events of runs, for SSE, the admin's live view, previews.
//   - core/llm and below: models. quote answers without any network; what the
//     clients of the two wires share is core/llm/provider.
//   - core/watch: whether files have changed, for agents and bots.
//   - core/session, core/usage, core/agent: what a conversation is, what it
//     cost, and who answers.
//   - core/permission: asks and their one decision; what a sender may read.
//   - core/orchestrator: one run, ten steps, events out, one Result.
//   - core/dispatch: takes turns from the queue, runs them, renders, acks.
//   - connectors and below: platforms. pairing: the gate. web, web/api, admin:
//     HTTP. configs: settings. cmd/gatehouse joins everything.
//
// Nothing in core knows a platform's name.
package core
