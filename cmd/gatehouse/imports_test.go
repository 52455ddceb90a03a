package main

import (
	"bufio"
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// module is our module's name and the prefix of our packages.
const module = "gatehouse"

// everything is the permission of the one package that joins all others.
const everything = "*"

// may is the map of this program: a package, and what it may import of ours.
// A new package or a new edge is a decision, so it is made here, in a diff that
// someone reads. Tests may import what they like.
var may = table(`
admin: admin/accounts admin/approvals admin/chats admin/contexts admin/council admin/daily admin/find admin/imports admin/journal admin/logged admin/memory admin/nodes admin/operations admin/page admin/people admin/projects admin/reports admin/settings core
admin/accounts: admin/page core web/account web/auth web/auth/totp
admin/approvals: admin/page core core/ask core/diff core/permission core/permission/raise
admin/charts: core
admin/chats: admin/chats/input admin/chats/messages admin/chats/thumb admin/markdown admin/page core core/ask core/attach core/attach/content core/bus core/queue/inspect core/runs core/session core/transcript core/usage web web/auth
admin/chats/input: core
admin/chats/messages: core/transcript
admin/chats/thumb: core  # small pictures
admin/contexts: admin/page core core/contexts web/auth
admin/council: admin/markdown admin/page core core/council/ledger
admin/daily: admin/page core core/schedule/daily
admin/logged: admin/page  # the log of conversations on the overview
admin/find: admin/page core core/index/search core/session core/transcript web/auth
admin/imports: admin/page core core/importer/foreign core/importer/report web web/importing
admin/journal: admin/markdown admin/page core core/journal web/auth
admin/markdown:
admin/memory: admin/page core core/memory core/memory/detect web/auth
admin/nodes: admin/page core/nodes
admin/operations: admin/charts admin/page core core/queue/inspect core/store core/usage web
admin/page: core core/diff web web/auth
admin/people: admin/page core core/usage pairing/codes pairing/people pairing/places web/auth
admin/projects: admin/page core core/project
admin/reports: admin/page core/report
admin/settings: admin/markdown admin/page core core/agent core/diff core/tool/mcp web/auth
cmd/gatehouse: *
cmd/gatehouse/admission: cmd/gatehouse/scheduling connectors/chat core core/agent core/dispatch core/orchestrator core/permission/raise core/queue core/queue/inspect core/queue/outbox core/schedule core/session core/store pairing web/auth
cmd/gatehouse/adoption: configs configs/former configs/live core core/store pairing/adopt
cmd/gatehouse/attachments: connectors connectors/markdown core core/attach core/orchestrator core/store core/texts core/tool core/tool/files/place core/vault
cmd/gatehouse/backups: cmd/gatehouse/doctor cmd/gatehouse/sealing configs core core/backup core/queue/maintenance core/queue/outbox core/report core/runs core/schedule core/schedule/remind core/store core/store/carry/remote core/vaultsync pairing/bots pairing/people
cmd/gatehouse/bottexts: admin/settings configs connectors/discord connectors/discord/markup connectors/telegram core core/texts
cmd/gatehouse/claude: configs core core/claudecli core/llm core/orchestrator core/permission core/permission/guard core/sandbox core/tool/files core/toolset
cmd/gatehouse/commands: cmd/gatehouse/backups cmd/gatehouse/commands/console cmd/gatehouse/control cmd/gatehouse/control/bridge cmd/gatehouse/doctor cmd/gatehouse/fleet cmd/gatehouse/isolation cmd/gatehouse/library cmd/gatehouse/models cmd/gatehouse/setup configs configs/live core core/agent core/attach core/backup core/beneath core/erasure core/importer/report core/importer/tasks core/index/search core/llm/registry core/permission core/project core/sandbox core/schedule/daily core/session/reindex core/store core/vault core/voice/pending web/api/bots web/api/find web/auth/keyfile web/upload
cmd/gatehouse/commands/access: cmd/gatehouse/commands/console cmd/gatehouse/control connectors/chat/access core core/sealed/columns pairing/codes pairing/people web/account web/auth
cmd/gatehouse/commands/migrating: cmd/gatehouse/commands/console configs core core/backup core/store core/store/carry core/store/carry/remote core/store/snapshot core/vault  # the command migrate
cmd/gatehouse/commands/period: core  # periods of the command line
cmd/gatehouse/commands/syncing: cmd/gatehouse/commands/console core core/vaultsync/client  # the command sync
cmd/gatehouse/commands/console: cmd/gatehouse/control cmd/gatehouse/standby/vaultid configs core
cmd/gatehouse/control: core core/permission core/store core/tool/mcp/entry pairing/codes pairing/people web web/account web/api/bots/post web/auth
cmd/gatehouse/control/bridge: core
cmd/gatehouse/control/server: cmd/gatehouse/control configs/live core core/attach core/erasure core/erasure/tasks core/jobs core/permission core/session core/session/reindex core/store core/tool/mcp core/vault pairing/codes pairing/people web web/account web/api/bots web/auth web/upload
cmd/gatehouse/doctor: cmd/gatehouse/speech cmd/gatehouse/standby/vaultid configs configs/live core core/agent core/backup core/llm/embed core/nodes core/sandbox core/sealed/columns core/store core/store/integrity core/store/postgres core/store/snapshot core/tool/mcp core/tool/mcp/entry core/vault core/voice core/voice/program
cmd/gatehouse/fleet: configs configs/live connectors connectors/discord connectors/telegram core core/queue core/queue/maintenance core/queue/outbox core/store core/watch pairing pairing/bots
cmd/gatehouse/guests: core core/store core/vault  # folders of linked users
cmd/gatehouse/isolation: cmd/gatehouse/control configs core/sandbox core/sandbox/container
cmd/gatehouse/library: core core/index/crawl core/index/document core/index/embedding core/index/meaning core/index/search core/index/vector core/journal core/llm core/llm/embed core/permission core/session core/session/found core/store core/usage
cmd/gatehouse/logs: configs configs/values
cmd/gatehouse/memory: core
cmd/gatehouse/models: configs configs/live configs/providers core core/agent core/claudecli core/llm core/llm/registry core/watch
cmd/gatehouse/ownfiles: configs core/backup/directory core/sandbox
cmd/gatehouse/phones: connectors/discord/discordtest connectors/telegram/telegramtest core
cmd/gatehouse/remembering: connectors/chat/memory core core/ask core/council/ledger core/memory core/memory/backup core/memory/check core/memory/extract core/memory/handoff core/orchestrator core/session core/store  # the memory in runs
cmd/gatehouse/restore: admin/settings cmd/gatehouse/backups configs core core/backup core/backup/directory core/store core/vault
cmd/gatehouse/scheduling: core core/agent core/orchestrator core/permission core/permission/guard core/schedule core/schedule/daily core/schedule/remind core/session core/store core/tool core/tool/daily core/tool/remind
cmd/gatehouse/sealing: configs core core/attach core/council/ledger core/memory core/memory/handoff core/sealed core/sealed/columns core/store core/store/carry core/vault web/account
cmd/gatehouse/secrets: configs
cmd/gatehouse/service: core  # the service manager
cmd/gatehouse/setup: cmd/gatehouse/doctor configs configs/values connectors connectors/discord connectors/telegram core
cmd/gatehouse/stage: cmd/gatehouse/phones cmd/gatehouse/stage/scripted configs connectors/discord/discordtest connectors/telegram/telegramtest core core/vault
cmd/gatehouse/stage/scripted:  # the models of the demo's council
cmd/gatehouse/standby: cmd/gatehouse/service cmd/gatehouse/standby/vaultid configs core core/nodes core/sealed/columns core/store/migrations core/store/postgres core/vault web web/api/health
cmd/gatehouse/standby/vaultid: configs core/store core/store/snapshot core/vault  # the id of a vault whose database is on a server
cmd/gatehouse/speech: configs core/llm/transcribe core/sandbox core/voice core/voice/hearing core/voice/program
cmd/gatehouse/unasked: core core/orchestrator core/queue/outbox core/report core/session core/store core/texts pairing/people web/api/bots
cmd/gatehouse/views: admin/chats admin/find admin/page admin/settings cmd/gatehouse/fleet cmd/gatehouse/library configs/values core core/agent core/ask core/backup/directory core/bus core/dispatch core/erasure/tasks core/importer core/jobs core/orchestrator core/permission/guard core/queue core/queue/inspect core/runs core/session core/store core/texts core/transcript core/usage pairing pairing/people web/api/sessions web/api/turns web/auth
cmd/loadgen: cmd/loadgen/bare cmd/loadgen/child cmd/loadgen/council cmd/loadgen/crowd cmd/loadgen/field cmd/loadgen/fill cmd/loadgen/floor cmd/loadgen/index cmd/loadgen/model cmd/loadgen/report cmd/loadgen/schemas
cmd/loadgen/bare:
cmd/loadgen/child: cmd/loadgen/field
cmd/loadgen/council:  # members of a council to measure with
cmd/loadgen/crowd: connectors/discord/discordtest connectors/telegram/telegramtest
cmd/loadgen/field: cmd/loadgen/crowd cmd/loadgen/report connectors/discord/discordtest connectors/telegram/telegramtest
cmd/loadgen/fill:
cmd/loadgen/floor: cmd/loadgen/report
cmd/loadgen/index: cmd/loadgen/report core core/index/chunk core/index/document core/index/search core/store  # the index in process
cmd/loadgen/model:  # a language model to measure with
cmd/loadgen/report:
cmd/loadgen/schemas:  # of gateways on a PostgreSQL server
configs: configs/check configs/former configs/providers configs/values
configs/check: configs/values  # what values of settings must be like
configs/former: configs/values  # the bots file of the original system
configs/live: configs configs/values core core/store core/store/postgres core/store/snapshot  # settings in effect
configs/providers: configs/check configs/values  # the file of named providers of models
configs/values:  # types of settings
connectors: core core/texts
connectors/chat: connectors connectors/chat/access connectors/chat/accuracy connectors/chat/activity connectors/chat/arguments connectors/chat/ask connectors/chat/find connectors/chat/help connectors/chat/journal connectors/chat/saved connectors/chat/spending core core/agent core/attach core/bus core/command core/orchestrator core/permission/raise core/queue core/queue/outbox core/runs core/session core/store core/texts core/transcript core/usage pairing/places
connectors/chat/access: connectors/chat/arguments core core/command core/texts pairing/codes  # /pairing, /approve, /deny, /invite, /pair, /link
connectors/chat/accuracy: connectors/chat/arguments connectors/chat/ask core core/command core/texts  # the command /accuracy
connectors/chat/activity: connectors/chat/arguments core core/command core/session core/store core/texts  # the command /activity
connectors/chat/arguments: core/command core/texts
connectors/chat/ask: connectors core core/ask core/command core/diff core/permission core/store core/texts core/tool
connectors/chat/daily: connectors/chat/arguments connectors/chat/ask core core/command core/schedule/daily core/texts  # the command /agents daily
connectors/chat/find: connectors/chat/ask core core/command core/index/search core/store core/texts  # the command /search
connectors/chat/handoff: core core/command core/session core/store core/texts  # the command /handoff
connectors/chat/help: core/command core/texts  # the command /help
connectors/chat/journal: connectors/chat/ask core core/command core/journal core/queue core/store core/texts core/voice  # the commands /journal and /timezone
connectors/chat/memory: connectors/chat/arguments connectors/chat/ask core core/command core/memory core/store core/texts  # the commands of the memory
connectors/chat/project: connectors/chat/ask core core/command core/project core/session core/store core/texts  # the command /project
connectors/chat/remind: connectors/chat/ask core core/command core/schedule/remind core/store core/texts  # the commands of reminders
connectors/chat/saved: connectors/chat/ask core core/command core/contexts core/session core/store core/texts  # the command /context
connectors/chat/spending: core core/command core/store core/texts core/usage  # the command /usage
connectors/chat/why: connectors/chat/arguments core core/command core/council/choice core/council/ledger core/queue/outbox core/session core/store core/texts  # the commands /why and /pick
connectors/connectorstest: connectors core core/coretest
connectors/discord: connectors connectors/discord/gateway connectors/discord/inbound connectors/discord/interactions connectors/discord/markup connectors/discord/readback connectors/discord/rest connectors/discord/wire core core/texts
connectors/discord/discordtest: connectors/simulator core
connectors/discord/gateway: core
connectors/discord/inbound: connectors connectors/discord/gateway connectors/discord/rest connectors/discord/wire core  # events become core.Inbound
connectors/discord/interactions: connectors connectors/discord/markup connectors/discord/rest connectors/discord/wire core core/texts
connectors/discord/markup: connectors/markdown core
connectors/discord/markup/markuptest:
connectors/discord/readback: connectors connectors/discord/gateway connectors/discord/rest connectors/discord/wire core  # what channels hold from when no session lived
connectors/discord/rest: connectors core  # requests, and what their failures mean
connectors/discord/wire: connectors core  # the platform's objects
connectors/markdown: core
connectors/simulator: core  # what simulators of platforms share
connectors/telegram: connectors connectors/markdown connectors/telegram/inbound core core/texts
connectors/telegram/inbound: connectors core  # updates become core.Inbound
connectors/telegram/telegramtest: connectors/simulator core
core:  # words only
core/activity: core core/activity/daylog core/activity/summary core/runs core/session core/store core/transcript core/vault  # what is written of finished runs
core/activity/daylog:  # texts of the files, imports no package of ours
core/activity/summary: core core/llm core/transcript core/usage core/usage/charged
core/agent: core core/agent/frontmatter core/agent/section core/beneath core/texts core/vault core/watch
core/agent/frontmatter:
core/agent/section:  # a file in a prompt
core/ask: core core/diff core/store core/texts
core/attach: core core/attach/content core/sealed core/store core/texts core/vault
core/attach/content:  # the text of a file, imports no package of ours
core/attach/pdftext: core core/texts
core/backup: core core/backup/archive core/beneath core/queue/maintenance core/store core/store/snapshot core/vault
core/backup/archive: core  # the form of a backup
core/backup/directory: core core/backup core/jobs core/store  # the directory of backups
core/beneath:  # files below an open folder, without links
core/bus: core
core/claudecli: core core/permission core/sandbox core/texts core/tool  # calls as the guard knows them, and a tree that ends as a whole
core/claudecli/claudetest: core/vault  # where the CLI keeps transcripts
core/command: core core/store core/texts
core/contexts: core core/vault  # saved lists of folders and files
core/coretest:
core/council/choice: core core/llm/strict  # weights, ratings and routing, computed
core/council/claims: core core/council/choice  # answers, compared by what they claim
core/council/domains: core core/council/choice  # what questions are about
core/council/stream: core/council/choice  # an answer, while it comes and in pieces
core/council/ledger: core core/council/choice core/council/domains core/sealed core/sealed/columns core/store  # what was asked, answered and found of it
core/diff: core  # what changes in a text, for people
core/council: core core/council/choice core/council/claims core/council/domains core/council/ledger core/council/stream core/llm core/llm/strict core/orchestrator core/store core/texts  # several models answer a turn
core/dispatch: core core/bus core/command core/orchestrator core/orchestrator/call core/queue core/queue/halt core/queue/inspect core/queue/outbox core/runs core/store core/texts
core/erasure: core core/beneath core/session core/store core/transcript/redact core/vault
core/erasure/tasks: core core/erasure core/jobs core/store
core/importer: core core/importer/foreign core/importer/record core/importer/report core/importer/source  # conversations of other systems
core/importer/chatgpt: core core/importer/foreign  # a form of exports
core/importer/claudeai: core core/importer/foreign  # a form of exports
core/importer/foreign: core  # conversations as exports have them
core/importer/importertest:
core/importer/record: core core/agent core/agent/frontmatter core/importer/foreign core/transcript/record  # conversations as Markdown
core/importer/report:
core/importer/source: core core/importer/chatgpt core/importer/claudeai core/importer/foreign core/importer/record
core/importer/tasks: core core/importer/foreign core/importer/report core/jobs
core/index: core core/store core/store/fulltext core/transcript core/transcript/lines core/transcript/words
core/index/chunk: core/agent/frontmatter  # passages of texts
core/index/crawl: core core/index/chunk core/index/document  # the vault's files
core/index/document: core core/index/chunk core/index/search core/index/vector core/store core/store/fulltext core/transcript/words
core/index/embedding: core core/index/document core/index/search core/llm/embed  # a model reads the passages
core/index/meaning: core core/index/vector core/llm/embed  # texts that are not in the index, compared
core/index/search: core core/transcript/words
core/index/vector: core/store  # which vectors are near
core/jobs: core
core/journal: core core/beneath core/journal/dayfile core/paraid/entry core/store core/vault
core/journal/dayfile:  # day files, split into entries
core/llm: core core/texts
core/llm/anthropic: core core/llm core/llm/provider core/texts
core/llm/anthropictest: core core/llm/wiretest
core/llm/embed:
core/llm/embedtest: core/transcript/words
core/llm/health: core core/llm  # which models fail, told by their answers
core/llm/llmtest: core core/llm/wiretest
core/llm/openai: core core/llm core/llm/provider core/texts
core/llm/provider: core core/llm core/texts  # what the clients of the two wires share
core/llm/quote: core core/llm core/texts  # gets its search as a function
core/llm/registry: core core/llm core/llm/anthropic core/llm/health core/llm/openai core/llm/quote  # names → models
core/llm/strict: core  # JSON that models were asked for
core/llm/transcribe:
core/llm/wiretest: core core/llm  # what the fakes of the two wires share, and their clients' tests
core/memory: core core/memory/block core/memory/check core/memory/detect core/memory/score core/sealed core/sealed/columns core/store core/texts
core/memory/allowance: core core/store  # tokens of a day
core/memory/backup: core core/llm core/memory/allowance core/memory/handoff core/sealed core/session core/store core/transcript core/usage core/usage/charged  # notes that models write on conversations
core/memory/block: core/memory/detect  # corrections as a prompt has them
core/memory/check: core core/memory/detect  # what a program can check of an answer
core/memory/detect: core  # whether a message corrects an answer
core/memory/extract: core core/llm core/llm/strict core/memory core/memory/allowance core/memory/detect core/store core/usage core/usage/charged  # a model reads messages for corrections
core/memory/handoff: core  # the form of notes on conversations
core/memory/score: core/memory/detect  # what a correction is worth
core/nodes: core core/store core/store/tenure
core/orchestrator: core core/agent core/ask core/attach core/llm core/memory/handoff core/orchestrator/bill core/orchestrator/call core/orchestrator/incoming core/orchestrator/metrics core/orchestrator/named core/orchestrator/resumed core/orchestrator/watchdog core/permission core/runs core/session core/store core/texts core/tool core/transcript core/usage core/vault
core/orchestrator/bill: core core/llm core/store core/usage  # what the model calls of a run take
core/orchestrator/call: core core/tool  # one call of a tool, within its time
core/orchestrator/incoming: core core/agent core/attach/content core/llm core/texts core/voice  # what comes with a message, as blocks
core/orchestrator/metrics: core core/orchestrator/call
core/orchestrator/named: core core/tool core/transcript/lines  # whether a text names a host or an address
core/orchestrator/resumed: core core/orchestrator/call core/transcript  # what a runtime has left of a turn
core/orchestrator/watchdog: core core/llm  # ends a run that takes too long
core/paraid: core core/paraid/entry core/store core/vault  # ids of entries and conversations
core/paraid/entry: core  # what an id is
core/permission: core core/permission/arguments core/permission/pattern core/permission/shell core/permission/shell/vetted core/texts core/tool core/vault
core/permission/arguments:
core/permission/guard: core core/ask core/diff core/permission core/store core/texts core/tool core/vault
core/permission/pattern:  # patterns of commands, imports no package of ours
core/permission/raise: core core/store core/texts
core/permission/shell: core/permission/shell/programs core/permission/shell/vetted core/permission/shell/walk
core/permission/shell/programs: core/permission/shell/walk  # programs that run others, delete, change disks and rights
core/permission/shell/vetted:  # reads commands, imports no package of ours
core/permission/shell/walk:  # follows a command line, imports no package of ours
core/project: core core/store  # named groups of conversations
core/queue: core core/queue/burst core/queue/halt core/queue/metrics core/queue/moved core/queue/orphans core/queue/outbox core/queue/recent core/store
core/queue/burst: core core/store  # messages that are parts of one
core/queue/orphans: core core/store
core/queue/flight:  # how far sends got, for the start after a crash
core/queue/halt:  # how the stop of a turn is stored
core/queue/inspect: core core/queue/halt core/store  # what the panel and metrics ask the tables
core/queue/maintenance: core core/store  # erases, prunes and repairs the tables
core/queue/metrics: core
core/queue/moved: core core/store  # the lanes of chats that got another id
core/queue/outbox: core core/queue/flight core/store  # replies, from their commit to the platform
core/queue/recent: core core/store  # what a sender has sent lately, for the rates
core/report: core core/store  # how runs of the gateway ended, and the faults in its log
core/response: core core/store  # what the Responses API stores
core/runs: core core/store core/texts
core/sandbox: core core/beneath core/sandbox/landlock core/sandbox/mask core/sandbox/measure core/sandbox/seccomp
core/sandbox/container: core core/beneath core/sandbox core/sandbox/container/inside
core/sandbox/container/inside: core/sandbox  # the first process of a container
core/sandbox/landlock:  # the kernel restricts a thread, imports no package of ours
core/sandbox/mask:  # mounts over files, imports no package of ours
core/sandbox/measure:  # what processes use, imports no package of ours
core/sandbox/seccomp:  # filters of system calls, imports no package of ours
core/schedule: core core/schedule/daily core/store core/vault
core/schedule/daily: core core/agent/frontmatter core/schedule/when core/vault
core/schedule/remind: core core/schedule/when core/store core/texts
core/schedule/when:  # times of a rule
core/sealed: core  # encrypted columns, without a database
core/sealed/columns: core core/sealed core/store  # which columns, with which keys
core/session: core core/index core/session/sidecar core/store core/texts core/transcript core/transcript/markdown core/transcript/redact core/transcript/words core/vault
core/session/bring: core core/importer/foreign core/session core/session/reindex core/store core/transcript core/vault  # sessions of conversations of other systems
core/session/discover: core core/session core/session/reindex core/store core/vault core/watch
core/session/found: core core/index core/index/document core/index/search core/index/vector core/session core/store core/transcript/words  # conversations as a source of the search
core/session/reindex: core core/session core/session/sidecar core/store core/transcript core/transcript/lines core/vault
core/session/sidecar: core core/store core/transcript core/vault
core/store: core core/store/cmemory core/store/integrity core/store/fulltext core/store/migrations core/store/original core/store/reading core/store/tenure
core/store/carry: core core/store core/store/migrations core/store/postgres core/store/tenure  # copies a database into one of the other engine
core/store/carry/remote: core core/store core/store/carry core/store/postgres  # databases on a server
core/store/cmemory:  # the heap of the C library
core/store/fulltext:  # conditions on words
core/store/integrity: core  # whether the file is still the database
core/store/migrations: core
core/store/original: core  # takes over a database of the original system
core/store/postgres: core core/store core/store/migrations core/store/tenure
core/store/snapshot: core core/store/migrations  # copies of, and looks into, a database that others may have open
core/store/tenure: core  # one gateway at a time writes to a database on a server
core/store/reading:  # reads of a pool of connections
core/store/storetest: core core/store core/store/migrations core/store/postgres core/store/tenure
core/texts: core  # what is said to people; whoever says something takes its words from there
core/tool: core core/vault
core/tool/daily: core core/schedule/daily core/tool
core/tool/fetch: core core/tool
core/tool/files: core core/tool core/tool/files/place core/tool/files/search core/vault
core/tool/files/place: core core/tool
core/tool/files/search: core core/tool core/tool/files/place core/vault
core/tool/journal: core core/journal core/tool  # an entry for the turn's user
core/tool/mcp: core core/beneath core/sandbox core/tool core/tool/mcp/entry core/tool/mcp/program core/vault
core/tool/mcp/entry: core
core/tool/mcp/program: core core/sandbox
core/tool/remind: core core/schedule/remind core/tool
core/tool/search: core core/index/search core/tool core/tool/files/place  # the index, for a turn
core/tool/shell: core core/beneath core/sandbox core/tool
core/tool/skill: core core/tool
core/toolset: core core/agent core/orchestrator core/permission core/permission/guard core/sandbox core/tool core/tool/fetch core/tool/mcp core/tool/mcp/entry core/tool/search core/tool/shell core/tool/skill core/vault  # what a turn may use
core/transcript: core core/transcript/lines core/transcript/record core/transcript/words core/vault  # conversations, without a database
core/transcript/lines: core core/vault/line  # lines as messages
core/transcript/markdown: core core/transcript core/transcript/record
core/transcript/record: core core/agent/frontmatter  # conversations that exist as Markdown only
core/transcript/redact: core core/transcript/lines core/vault  # copies of transcripts without a user's messages
core/transcript/words:  # what a word is
core/upkeep: core
core/usage: core core/store
core/usage/charged: core core/llm core/store core/usage  # calls of models beside the turns, within the budgets
core/vault: core core/beneath core/vault/line
core/vault/line:  # a line of a transcript
core/vaultsync: core core/journal/dayfile core/store core/vault core/vaultsync/merge core/vaultsync/place core/vaultsync/wire  # the vault, with copies on devices
core/vaultsync/client: core core/beneath core/vaultsync/place core/vaultsync/wire core/watch  # a device's copy
core/vaultsync/merge: core/diff core/journal/dayfile  # versions of a text, brought together
core/vaultsync/place: core core/beneath core/vaultsync/wire  # files that others change
core/vaultsync/wire: core  # what server and devices exchange
core/voice:  # speech becomes text, imports no package of ours
core/voice/decode: core/voice  # recordings as samples
core/voice/hearing: core core/voice core/voice/decode
core/voice/pending: core core/ask core/journal core/store core/texts core/voice  # what is transcribed later
core/voice/quota: core core/store core/voice  # how much is transcribed for a user
core/voice/program: core/sandbox core/voice  # programs that read recordings
core/watch: core  # whether files have changed
pairing: core core/store core/texts pairing/bots pairing/codes pairing/metrics pairing/people pairing/places
pairing/adopt: core core/store pairing/people  # the allowlists of the original system
pairing/bots: core core/texts
pairing/codes: core core/store core/texts pairing/bots pairing/people
pairing/metrics: core core/store
pairing/people: core core/store core/texts pairing/bots
pairing/places: core core/store core/texts pairing/bots
web: core
web/account: core core/sealed core/store web/auth web/auth/password web/auth/totp  # who may sign in to the panel, and in which role
web/api: web/api/contexts web/api/council core core/bus core/session web web/api/access web/api/bots web/api/daily web/api/find web/api/handoffs web/api/health web/api/imports web/api/journal web/api/memory web/api/passages web/api/permissions web/api/projects web/api/reports web/api/sessions web/api/stream web/api/sync web/api/turns web/api/voice web/auth web/upload
web/api/access: core web web/auth
web/api/bots: core web web/api/bots/post web/auth web/upload
web/api/bots/post: core
web/api/memory: core core/memory core/memory/detect web web/auth
web/api/passages: core core/index/document web web/auth  # passages of one content
web/api/daily: core core/schedule/daily web web/auth
web/api/contexts: core core/contexts web web/auth
web/api/council: core core/council/ledger web web/auth
web/api/find: core core/index/search web web/auth
web/api/handoffs: core core/memory/handoff core/session web web/auth  # notes on sessions
web/api/health: core web web/auth
web/api/imports: core core/importer/foreign core/importer/report web web/api/stream web/auth web/importing
web/api/journal: core core/journal web web/auth
web/api/permissions: core core/ask core/diff core/permission web web/auth
web/api/projects: core core/project web web/auth
web/api/reports: core core/store core/usage web web/auth
web/api/sessions: core core/session core/transcript web web/auth
web/api/stream: core web
web/api/sync: core core/vaultsync core/vaultsync/wire web web/auth
web/api/turns: core core/attach core/bus core/session web web/auth web/upload
web/api/voice: core core/voice core/voice/hearing web web/api/stream web/auth
web/api/v0: core core/bus core/session core/transcript web web/auth
web/auth: core core/store web web/auth/backoff web/auth/keyfile web/auth/link web/auth/password web/auth/proof web/auth/visit web/auth/watch
web/auth/authtest: core core/store web/auth
web/auth/backoff: core
web/auth/keyfile:
web/auth/link:
web/auth/password: core
web/auth/proof: core  # what shows what a browser proved before
web/auth/totp:
web/auth/visit: core
web/auth/watch: core  # callers of open streams
web/importing: core core/importer/foreign core/importer/report web web/auth
web/mcp: core web web/auth  # tools of other agents: requests of the API, in this process
web/openai: core web web/auth web/openai/answer web/openai/conversation web/openai/params web/openai/refusal
web/openai/answer: core core/bus web web/auth web/openai/refusal  # one request on its way to the end of its run
web/openai/conversation: core web web/openai/refusal  # what a request's messages are
web/openai/embeddings: core web web/auth web/openai/answer web/openai/params web/openai/refusal  # /v1/embeddings
web/openai/params: web web/openai/refusal  # a request's parameters, and which are refused
web/openai/refusal: core web  # errors in OpenAI's form
web/openai/responses: core core/bus core/response web web/auth web/openai/answer web/openai/conversation web/openai/params web/openai/refusal  # the Responses API
web/openai/transcriptions: core core/voice web web/auth web/openai/answer web/openai/refusal  # /v1/audio/transcriptions
web/static:
web/upload: core core/attach web
web/webtest:  # a real browser for tests
`)

// table parses lines of the form "package: its imports  # a remark".
func table(text string) map[string]string {
	m := map[string]string{}
	for line := range strings.Lines(strings.TrimSpace(text)) {
		line, _, _ = strings.Cut(line, "#")
		pkg, list, _ := strings.Cut(line, ":")
		m[pkg] = strings.TrimSpace(list)
	}
	return m
}

// imports lists our packages and what each imports of ours, tests left out.
func imports(t *testing.T) map[string][]string {
	t.Helper()
	cmd := exec.Command("go", "list", "-tags", "sqlite_fts5", "-f", `{{.ImportPath}} {{join .Imports " "}}`, module+"/...")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.String())
	}
	found := map[string][]string{}
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line)
		pkg := strings.TrimPrefix(words[0], module+"/")
		found[pkg] = nil
		for _, imp := range words[1:] {
			if ours, ok := strings.CutPrefix(imp, module+"/"); ok {
				found[pkg] = append(found[pkg], ours)
			}
		}
	}
	return found
}

func TestPackagesImportOnlyWhatTheTableAllows(t *testing.T) {
	found := imports(t)
	for pkg, list := range found {
		allowed, known := may[pkg]
		if !known {
			t.Errorf("%s is not in the table: decide what it may import", pkg)
			continue
		}
		for _, imp := range list {
			if allowed != everything && !slices.Contains(strings.Fields(allowed), imp) {
				t.Errorf("%s must not import %s", pkg, imp)
			}
		}
	}
	for pkg := range may {
		if _, ok := found[pkg]; !ok {
			t.Errorf("the table names %s, which does not exist", pkg)
		}
	}
}

// TestImportDepthIsHeld limits the longest way from a package down to one that imports
// nothing of ours. Commands stand on the core's six layers: what they are made of, what
// asks users about it, and main.
func TestImportDepthIsHeld(t *testing.T) {
	const deepest, deepestCommand = 6, 8
	found := imports(t)
	depths := map[string]int{}
	var depth func(string) int
	depth = func(pkg string) int {
		d, ok := depths[pkg]
		if !ok {
			for _, imp := range found[pkg] {
				d = max(d, 1+depth(imp))
			}
			depths[pkg] = d
		}
		return d
	}
	for pkg := range found {
		most := deepest
		if strings.HasPrefix(pkg, "cmd/") {
			most = deepestCommand
		}
		if d := depth(pkg); d > most {
			t.Errorf("%s has %d layers below it, want at most %d", pkg, d, most)
		}
	}
}

var platform = regexp.MustCompile(`(?i)telegram|discord`)

// mayName are the lines outside of connectors that may name a platform, each
// with its reason. A line is "file: text", blanks trimmed.
var mayName = map[string]string{}

// TestNothingInTheMiddleKnowsAPlatformsName greps core, web and admin, comments
// too: a new platform must not need a change there.
func TestNothingInTheMiddleKnowsAPlatformsName(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	used := map[string]bool{}
	for _, dir := range []string{"core", "web", "admin"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			return namings(path, func(n int, text string) {
				rel, _ := filepath.Rel(root, path)
				key := filepath.ToSlash(rel) + ": " + text
				if used[key] = true; mayName[key] == "" {
					t.Errorf("%s:%d names a platform: %s", rel, n, text)
				}
			})
		})
		if err != nil {
			t.Error(err)
		}
	}
	for key := range mayName {
		if !used[key] {
			t.Errorf("the list of exceptions names a line that is not there: %s", key)
		}
	}
}

// namings reports the lines of a file that name a platform.
func namings(path string, report func(n int, text string)) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		if platform.Match(lines.Bytes()) {
			report(n, strings.TrimSpace(lines.Text()))
		}
	}
	return lines.Err()
}
