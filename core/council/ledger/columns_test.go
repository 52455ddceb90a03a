package ledger

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gatehouse/core/store/storetest"
)

// Tables and columns that programs for councils have.
var expected = map[string]string{
	"conversations":       "conversation_id user_id title project_id created_at updated_at",
	"messages":            "message_id conversation_id role content callout_type models_used accuracy_level confidence created_at",
	"model_runs":          "run_id query_id conversation_id model_id round raw_response utility_score confidence_score vcg_welfare_score vcg_winner corrections_applied latency_ms domain created_at",
	"corrections":         "correction_id user_id type scope corrective_instruction canonical_query domain confidence decay_class pinned score_delta extracted_via created_at",
	"audit_log":           "audit_id model_id event_type score_before score_after verdict correction_stored query_preview payload created_at",
	"message_keywords":    "id keyword message_id conversation_id role created_at",
	"context_backups":     "backup_id model_id conversation_id backup_text token_estimate thread_number trigger created_at",
	"token_counters":      "counter_id model_id conversation_id token_estimate message_count thread_number last_backup_at updated_at",
	"recovery_prompts":    "model_id conversation_id prompt_text generated_at corrections_hash",
	"projects":            "project_id user_id name created_at",
	"attachments":         "attachment_id message_id conversation_id filename mimetype size_bytes page_count word_count is_image truncated preview created_at",
	"app_sessions":        "session_id status started_at ended_at system_log_snippet api_log_snippet",
	"error_reports":       "report_id error_type error_message traceback context sent sent_at",
	"models_config_cache": "cache_id config_json fetched_at",
	"domain_nodes":        "node_id parent_id depth display_name aliases embedding query_count is_l0_root",
	"domain_candidates":   "raw_string nearest_node similarity query_count model_sources first_seen last_seen",
	"local_settings":      "settings_id local_enabled verify_enabled verify_model_id implicit_threshold content_encrypted terms_accepted_at user_token bugs_pat skipped_version",
	"users":               "user_id created_at settings",
}

// built are tables that exist, under the same or another name.
var built = strings.Fields("conversations messages model_runs corrections audit_log message_keywords context_backups token_counters recovery_prompts projects attachments app_sessions error_reports domain_nodes domain_candidates users")

var (
	columnRow = regexp.MustCompile("(?m)^\\| `([a-z_]+)\\.([a-z_0-9]+)` \\| (.+) \\|$")
	columnAt  = regexp.MustCompile("^`([a-z_]+)\\.([a-z_0-9]+)`")
)

// The documents say of each column where it is, in a table that exists, or why there is
// none.
func TestTheDocumentsSayWhereEachColumnIs(t *testing.T) {
	t.Parallel()
	storetest.SQLiteOnly(t, "it asks SQLite for columns")
	w := newWorld(t)
	b, err := os.ReadFile("../../../docs/council.md")
	w.must(err)
	found := map[string]string{}
	for _, m := range columnRow.FindAllStringSubmatch(string(b), -1) {
		found[m[1]+"."+m[2]] = m[3]
	}
	if len(expected) != 18 {
		t.Errorf("%d tables", len(expected))
	}
	for table, columns := range expected {
		for column := range strings.FieldsSeq(columns) {
			at := found[table+"."+column]
			delete(found, table+"."+column)
			if at == "not yet" && slices.Contains(built, table) {
				t.Errorf("%s.%s: the table exists, so that its column is there or not wanted", table, column)
				continue
			}
			if at == "not yet" || strings.HasPrefix(at, "none: ") {
				continue
			}
			m := columnAt.FindStringSubmatch(at)
			if m == nil {
				t.Errorf("%s.%s: %q is no column, no reason and not 'not yet'", table, column, at)
				continue
			}
			var n int
			w.must(w.db.Get(t.Context(), &n, `SELECT count(*) FROM pragma_table_info($1) WHERE name = $2`, m[1], m[2]))
			if n != 1 {
				t.Errorf("%s.%s is said to be in %s, which does not exist", table, column, m[0])
			}
		}
	}
	for name := range found {
		t.Errorf("%s is no column of these tables", name)
	}
}
