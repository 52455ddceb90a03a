// Package core declares the types that packages exchange: Address, Inbound,
// Reply, Part, Event, Block, Trust, Role, Verdict, Error, Clock. It imports only
// the standard library, and every package may import it. Neither core nor a
// package below it names a platform.
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
// cmd/gatehouse connects the packages. In app.go, build opens the vault and the
// database and creates every part, in the order in which data flows through them.
// In serve.go, app.Run starts them; to stop, it drains the queue before it closes
// the listeners. cmd/gatehouse/commands has a file for each command of the command
// line. configs.Config has one field for each setting; configs/live has the settings
// that the panel changes while the program runs.
//
// # 2. A message arrives
//
// A connector (connectors.Connector: Run and Send; other abilities are optional
// interfaces) turns the platform's update into an Inbound (message.go): sender,
// Address, text, files, and the id under which the platform would repeat it.
// connectors.Hub runs the connectors, restarts them after failures and keeps to
// the platforms' rate limits. The HTTP API creates the same Inbound
// (web/api/turns/turns.go, API.converse).
//
// # 3. It is stored, or not
//
// Both call queue.Put (core/queue/put.go) with a page of messages and the
// platform's cursor. In one transaction Put drops repeats, asks the gate about
// new rows, inserts them and advances the cursor. A connector confirms the update
// to its platform only after the commit, so a confirmed message is not lost.
//
// The gate is queue.Turns; for chats it is pairing.Gate.Admit. It returns an
// Admission: to run, hold or drop the row, and what it knows about the sender. A
// stranger's message is held with a pairing request until the owner decides.
// pairing/people, codes and places store who has access. core/store has the
// database: DB.Tx queues the closure for the one writer, which commits several
// closures together.
//
// # 4. A turn is claimed
//
// Each chat has a lane (LaneOf). queue.Serve claims lanes that are due (take.go) and
// starts a goroutine for each turn: turns of one chat run in order, chats in parallel.
// The claim looks up the sender's trust again; a lower one applies immediately. The
// claim's epoch is a fence: after a lane is claimed again, the earlier turn can
// not commit any more. Stops, approvals and answers to questions have a control lane,
// so they do not wait for the turn that they concern.
//
// # 5. The turn is dispatched
//
// dispatch.Dispatcher.Handle (core/dispatch/dispatch.go) decides what a turn is: a
// command or a button (values of connectors/chat, with the types of core/command)
// or a message that needs a run. Dispatcher.answer in run.go runs it and
// publishes its events to core/bus. The API streams them from there, the panel
// shows them, and show.go makes previews in the chat. core/runs stores events for
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
//   - talk.rounds: ask the model, store its answer, run the tools that it calls, repeat.
//     talk.ask reads the deltas of llm.Model.Reply. The clients of providers are below
//     core/llm; quote is a model that needs no network.
//   - talk.call: one call of a tool. guard.Guard.Allow decides: run, ask the
//     user, or refuse. The tools are below core/tool; those that start programs
//     use core/sandbox.
//   - bill.Bill reserves each call of a model in the budgets and counts what it took;
//     watchdog.Watchdog ends a run that takes too long or has a silent model.
//   - talk.compact: replace the older part of a long conversation by a summary.
//   - run.done, run.failed and run.cut: return the Result, whose Write stores the
//     end of the run.
//
// A run publishes Events (event.go). A whole message is in the transcript before
// its event is published; deltas are previews and may be lost. Transcripts are
// JSON Lines files in the vault; transcript.Conversation appends and reads them
// without the database. core/session has the rows and tags of conversations,
// core/index their full-text search. core/vault opens files only below its
// directory and follows no link.
//
// After a crash the queue runs the turn again under the same run id. run.saidBefore
// and run.interrupted read in the transcript how far the earlier attempt got: a
// finished answer is sent. If a tool call has no result, its outcome is unknown, and
// the user is asked before work continues.
//
// # 7. The answer is sent
//
// Dispatcher.finish calls queue.Ack (ack.go). In one transaction Ack checks the epoch,
// finishes the inbox rows, writes session, run and usage, and inserts the replies
// into the outbox. Only then is the run's last event published. The outbox sends
// its rows through Hub.Send. The connector returns a Delivery, from which
// Outbox.settleSend (settle.go) decides: sent, retry later, failed, or outcome
// unknown. A new message whose outcome is unknown is repeated at most once, with a
// note that the user can see.
//
// # 8. Other packages
//
//   - core/permission is the policy, permission/guard applies it to calls, and core/ask
//     stores open questions of every kind. permission/shell parses commands,
//     shell/vetted parses those that run without a question, and permission/raise
//     is trust for a limited time.
//   - core/usage: the cost of model calls, and budgets. core/attach: files that
//     came with messages. core/activity: titles of conversations, and the log of the
//     owner's in the vault, after each finished run.
//   - core/erasure: each owner of tables registers how it deletes, merges and
//     exports what it stores about a user. core/backup: backup and restore.
//   - core/texts: every text that users read in chat, as templates.
//   - web: server, sign-in (web/auth), the API and its OpenAI-compatible part.
//     admin: the panel, one package for each group of pages.
//
// # Rules to know before a change
//
// A caller declares the interface that it needs, with the methods that it calls.
// Each table has one owner package. A closure given to DB.Tx may run twice: it
// assigns and never adds; effects outside the database belong in Tx.OnCommit. An
// error with a Kind (error.go) has a text for its reader; any other error is a fault
// of the program and is logged. Time comes from a Clock. Every queue, cache and list
// has a limit, stated where it is declared.
package core
