// Package core declares the types that cross package borders: Address, Inbound,
// Reply, Part, Event, Block, Trust, Role, Verdict, Error, Clock. It imports only
// the standard library, and every package may import it. Nothing in core and
// below it names a platform.
//
// # A tour of the program
//
// The tour follows one message from the network to its answer. Read the named
// functions in this order, each with its doc comment; that takes about an hour.
// cmd/gatehouse/imports_test.go lists what each package may import, and
// docs/development.md where to make common changes.
//
// # 1. The program
//
// cmd/gatehouse joins the packages and contains little else. In app.go, build
// opens the vault and the database and creates every part, in the order in which
// data flows through them; in serve.go, app.Run starts them, and to stop drains
// the queue before it closes the listeners. Each command of the command line is a file with a Run method.
// configs.Config has one field for each setting; configs/live has what the panel
// overrides while the program runs.
//
// # 2. A message arrives
//
// A connector (connectors.Connector: Run and Send, other abilities are optional
// interfaces) turns the platform's update into an Inbound (message.go): sender,
// Address, text, files, and the id by which the platform would repeat it.
// connectors.Hub runs the connectors, restarts them after failures and keeps to
// the platforms' rate limits. The HTTP API creates the same Inbound: web/api,
// API.converse in web/api/turns/turns.go.
//
// # 3. It is stored, or not
//
// Both call queue.Put (core/queue/put.go) with a page of messages and the
// platform's cursor. In one transaction Put drops repeats, asks the gate about
// new rows, inserts them and advances the cursor. Only after the commit does a
// connector confirm the update to its platform: a message that was confirmed is
// not lost. The gate is queue.Turns, for chats pairing.Gate.Admit: it returns an
// Admission, to run, hold or drop the row, with what it knows of the sender. A stranger's message is held with a pairing request until the
// owner decides. pairing/people, codes and places have who has access; core/store
// has the database: DB.Tx queues the closure for the one writer, which commits
// several together.
//
// # 4. A turn is claimed
//
// Each chat has a lane (LaneOf). queue.Serve claims due lanes (take.go) and starts
// a goroutine for each turn: turns of one chat run in order, chats in parallel.
// The claim looks up the sender's trust again; a lower one applies at once. Its
// epoch is a fence: when a lane was claimed again, the earlier turn can no longer
// commit. Stops, approvals and answers to questions have a control lane, so that
// they do not wait behind the turn that they are about.
//
// # 5. The turn is dispatched
//
// dispatch.Dispatcher.Handle (core/dispatch/dispatch.go) decides what a turn is: a
// command or a button (values of connectors/chat, with the types of core/command)
// or a message that needs a run. Dispatcher.answer in run.go runs it and
// publishes its events to core/bus, from where the API streams them, the panel
// shows them and show.go makes previews in the chat. core/runs stores events for
// clients that reconnect.
//
// # 6. The run
//
// orchestrator.Orchestrator.Prepare, in the transaction of the claim, finds the
// session (session.Store.Resolve) and computes the trust: the minimum of the
// sender's, the session's, the agent's and the workspace's. Orchestrator.Run does
// the rest:
//
//   - run.prepare: the agent (core/agent), the working directory, the system
//     prompt, the tools, the model (core/llm/registry) and the history.
//   - talk.rounds: ask the model, keep its answer, use the tools it calls, repeat.
//     talk.ask reads deltas of llm.Model.Reply; the clients of providers are below
//     core/llm, and quote is a model that needs no network.
//   - talk.call: one call of a tool. guard.Guard.Allow decides: run, ask the
//     user, or refuse. The tools are below core/tool; what runs programs does so
//     in core/sandbox.
//   - talk.compact: a summary replaces the older part of a long conversation.
//   - run.done, run.failed and run.cut: the Result, whose Write stores the end.
//
// An Event (event.go) is what a run publishes. A whole message is in the transcript
// before it is published; deltas are previews and may be lost. Transcripts are
// JSON lines in the vault: transcript.Conversation appends and reads them without a
// database; core/session has the rows and tags of conversations, core/index their
// full-text search.
// core/vault opens files only below its directory and follows no link.
//
// After a crash the queue runs the turn again under the same run id. run.saidBefore
// and run.interrupted read from the transcript how far the earlier attempt came: a
// finished answer is sent, and of a call without a result the outcome is unknown,
// so the user is asked before work continues.
//
// # 7. The answer is sent
//
// Dispatcher.finish calls queue.Ack (ack.go): in one transaction it checks the epoch,
// finishes the inbox rows, writes session, run and usage, and inserts the replies
// into the outbox. Only then is the run's last event published. The queue sends
// outbox rows through Hub.Send; the connector returns a Delivery, and
// Outbox.settleSend (settle.go) decides from it: sent, retry later, failed, or outcome
// unknown. A new message whose outcome is unknown is repeated at most once, with a
// note that the user can see.
//
// # 8. Around it
//
//   - core/permission is the policy, permission/guard applies it to calls, and core/ask
//     stores open questions of every kind. permission/shell reads commands, shell/vetted those that run
//     without a question; permission/raise is trust for a limited time.
//   - core/usage: what calls of models cost, and budgets. core/attach: files that
//     came with messages. core/titles: titles of conversations.
//   - core/erasure: each owner of tables registers how it forgets, merges and
//     exports what it keeps of a user. core/backup: backup and restore.
//   - core/texts: every text that users read in chat, as templates.
//   - web: server, sign-in (web/auth), the API and its OpenAI-compatible part.
//     admin: the panel, one package for each group of pages.
//
// # Rules to know before a change
//
// A caller declares the interface that it needs, with the methods that it calls.
// Each table has one owner package. A closure given to DB.Tx may run twice: it
// assigns and never adds; effects outside the database belong in Tx.OnCommit. An
// error of a Kind (error.go) has a text for its reader; any other error is ours,
// and is logged. Time comes from a Clock. Every queue, cache and list has a limit,
// stated where it is declared.
package core
