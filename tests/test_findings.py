"""Where each kind of fault of the first release is kept from coming back: the finding, and the tests of its kind.

T: what was said was not true. S: what is not ours could run, be killed, be deleted, or stop us. V: what was known did
not reach the person.

A test that is taken away without its finding being thought of fails here.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent
FINDINGS = {
    "T1-the-cwd-is-the-one-before-the-command": [
        "payloads/test_recorded.py::test_what_is_told_as_written_did_change",
        "events/test_looker.py::test_where_a_command_began_is_told",
    ],
    "T2-a-shell-line-is-not-guessed-at": [
        "sidecars/syntax/test_shell_corpus.py::",
        "sidecars/observe/test_scope_recall.py::test_scope_recall_is_1_and_nothing_else_is_told",
        "sidecars/observe/test_scope_recall.py::test_an_unchanged_file_is_never_stated_as_changed",
    ],
    "T3-what-failed-is-not-told-as-done-live-or-replayed": [
        "sidecars/observe/test_effects.py::test_a_failed_command_has_done_what_was_seen",
        "sidecars/test_live_and_replay.py::test_a_replay_comes_to_the_same_decisions",
    ],
    "T4-codex-edits-are-seen": ["payloads/test_recorded.py::test_a_writing_tool_that_succeeded_tells_all_it_changed"],
    "T5-rules-are-never-muted": [
        "sidecars/judge/test_rules_then_model.py::test_a_rule_at_the_threshold_speaks_whatever_the_model_would_say",
    ],
    "T6-late-is-not-lost": [
        "sidecars/test_held.py::test_whatever_happens_each_file_is_told_or_the_cap_is_reached",
        "sidecars/test_held.py::test_what_waits_when_the_run_ends_is_recorded_as_unsaid",
    ],
    "T7-once-holds": ["sidecars/test_held.py::test_once_holds_for_a_rule_with_a_comma_in_its_name"],
    "T8-a-permission-is-no-prohibition": ["sidecars/conventions/test_statements.py::test_statement_is_understood"],
    "T9-a-model-quotes-and-each-action-has-its-verdict": [
        "sidecars/judge/test_model.py::test_a_sentence_that_stands_in_no_document_is_no_signal",
        "sidecars/judge/test_model.py::test_each_action_has_its_own_verdict_and_the_call_is_paid_once",
        "sidecars/judge/test_model.py::test_a_lasting_refusal_is_told_once_and_not_asked_again",
        "sidecars/inject/test_gate.py::test_a_quote_that_nobody_saw_voids_the_verdict",
    ],
    "T10-age-and-whose-action-it-was": [
        "sidecars/test_held.py::test_what_a_cooldown_held_back_is_one_line_with_its_age",
        "sidecars/test_held.py::test_a_subagents_action_is_told_as_its_own",
        "sidecars/test_held.py::test_a_late_word_of_a_model_is_not_said_and_a_rules_is",
    ],
    "T11-where-the-words-come-from": [
        "sidecars/inject/test_gather.py::test_where_the_words_come_from",
        "sidecars/inject/test_gather.py::test_a_name_can_close_no_bracket",
    ],
    "T12-measured-on-cases-that-nobody-tuned-on": [
        "labelled/test_form.py::test_no_case_stands_in_both_halves",
        "sidecars/test_shipped_cases.py::test_rules_never_speak_without_need_and_find_all_that_rules_can_find",
    ],
    "T13-eval-says-who-has-judged": ["cli/test_sidecar.py::test_eval_says_which_judge_has_judged_and_why"],
    "S1-a-repository-runs-no-program-of-its-own": [
        "trust/test_trust.py::test_what_runs_spends_or_reaches_outside_does_not_count_untrusted",
        "trust/test_fixed_at_spawn.py::test_an_untrusted_repository_is_one_line_at_spawn",
        "trust/test_fixed_at_spawn.py::test_a_trusted_program_runs_without_keys_until_it_changes",
        "sidecars/judge/test_command.py::test_neither_keys_nor_gas_towns_variables_reach_it",
        "safety/test_hostile_repository.py::test_hostile",
    ],
    "S2-an-agent-does-not-replace-its-overseer": [
        "trust/test_fixed_at_spawn.py::test_a_respawn_uses_what_was_fixed_and_says_so_once",
        "trust/test_fixed_at_spawn.py::test_a_later_change_that_needs_no_trust_does_not_count_either",
        "trust/test_fixed_at_spawn.py::test_the_assignment_in_the_runs_folder_is_not_believed",
    ],
    "S3-a-report-that-the-agent-can-write-ends-nobody": [
        "supervise/test_only_what_is_recorded.py::test_a_forged_report_ends_nobody",
        "real/test_only_ours.py::test_a_later_owner_of_a_recorded_pid_lives",
    ],
    "S4-one-runs-files-stop-nobody-else": [
        "safety/test_poison.py::test_the_town_works_on",
        "safety/test_poison.py::test_an_end_is_finished_whatever_stands_in_the_runs_folder",
        "safety/test_one_way_to_open.py::",
        "delivery/test_receipts.py::test_a_transcript_that_is_none_proves_nothing_and_holds_nobody_up",
        "delivery/test_receipts.py::test_a_transcript_on_a_disk_that_hangs_stops_neither_the_patrol_nor_the_journal",
    ],
    "S5-nothing-is-deleted-or-moved-through-a-link": [
        "safety/test_poison.py::test_the_town_works_on",
        "files/test_files.py::test_a_link_in_the_place_of_a_folder_is_not_followed",
        "delivery/test_nudge_queue.py::test_folders_links_and_pipes_do_not_block_the_queue",
        "events/test_spool.py::test_a_folder_of_the_users_in_the_spools_place_is_neither_written_nor_cleared",
    ],
    "S6-yaml-and-foreign-expressions-are-bounded": [
        "config/test_yaml_document.py::test_a_document_that_is_meant_to_hurt_is_one_line_at_once",
        "test_expressions.py::test_no_expression_holds_its_reader_up",
        "test_expressions.py::test_what_is_no_expression_is_one_line",
    ],
    "S7-a-key-stands-in-no-environment": [
        "trust/test_keys.py::test_a_key_that_is_exported_later_works_and_shows_nowhere",
        "launch/test_environment.py::test_a_helper_has_no_key_and_nothing_of_a_polecats",
    ],
    "S8-a-living-pid-is-no-witness": [
        "supervise/test_only_what_is_recorded.py::test_a_living_pid_in_a_file_is_no_witness",
    ],
    "S9-nobody-makes-itself-protected": [
        "supervise/test_only_what_is_recorded.py::test_a_polecat_cannot_make_itself_one_of_us",
        "supervise/test_only_what_is_recorded.py::test_who_serves_our_socket_is_ours_with_the_lock_and_outside_of_every_polecat",
        "supervise/test_only_what_is_recorded.py::test_a_child_with_another_marker_ends_with_its_group",
        "process/test_table.py::test_a_child_that_carries_another_groups_marker_is_still_a_child",
    ],
    "S10-a-marker-alone-is-no-proof": [
        "supervise/test_only_what_is_recorded.py::test_a_stray_export_ends_nobody",
        "process/test_table.py::test_a_marker_alone_is_an_export_and_no_proof",
    ],
    "S11-the-agents-pane-and-no-other": [
        "supervise/test_agents_pane.py::test_text_goes_to_the_agents_pane_and_is_read_from_it",
        "supervise/test_agents_pane.py::test_a_pane_that_is_moved_away_is_still_the_agents",
        "supervise/test_agents_pane.py::test_what_a_person_does_beside_it_is_no_action_of_the_agent",
    ],
    "S12-the-servers-folder-is-remembered": [
        "supervise/test_agents_pane.py::test_a_server_in_another_folder",
        "test_town.py::test_a_patrol_finds_tmux_where_the_polecats_were_spawned",
    ],
    "S13-files-and-folders-are-ours-alone": [
        "safety/test_folders.py::test_under_any_umask_nothing_is_open_to_others",
        "safety/test_folders.py::test_a_runtime_folder_that_is_not_ours_alone_is_refused_at_spawn",
        "delivery/test_nudge_queue.py::test_a_nudge_that_another_user_wrote_is_set_aside_unread",
    ],
    "S14-a-removed-journal-is-made-anew": [
        "supervise/test_only_what_is_recorded.py::test_a_journal_that_is_taken_away_is_made_anew_from_what_lives",
    ],
    "S15-the-models-peer-is-not-trusted": [
        "sidecars/test_untrusted_server.py::test_an_absurd_count_never_lowers_what_was_spent",
        "sidecars/test_untrusted_server.py::test_deep_nesting_is_no_answer_and_no_crash",
        "sidecars/test_untrusted_server.py::test_a_report_that_is_nested_without_end_costs_no_time",
        "sidecars/test_untrusted_server.py::test_a_compressed_body_is_refused_unread",
        "sidecars/test_untrusted_server.py::test_endless_bodies_are_broken_off_once_for_all_tries_of_a_question",
    ],
    "S16-distill-keeps-to-its-time-and-memory": [
        "distill/test_decompress.py::test_a_million_members_that_hold_nothing_end_at_the_deadline",
        "distill/test_decompress.py::test_a_dictionary_larger_than_we_grant_is_a_gap",
        "distill/test_decompress.py::test_rules_to_leave_files_out_that_no_person_wrote_cost_nothing",
    ],
    "S17-said-cleanly-and-signed-by-who-it-is": [
        "cli/test_plain_output.py::test_control_bytes_of_names_do_not_reach_a_terminal",
        "supervise/test_who_says_it.py::test_nobody_signs_as_a_sidecar",
        "supervise/test_who_says_it.py::test_a_polecat_signs_as_itself",
        "delivery/test_forged_words.py::test_markup_is_neither_opened_nor_closed",
        "delivery/test_forged_words.py::test_nobody_signs_with_anothers_prefix",
    ],
    "S18-nothing-is-imported-from-where-it-starts": [
        "safety/test_folders.py::test_cron_imports_nothing_from_the_folder_that_it_starts_in",
    ],
    "S19-a-log-is-no-reason-not-to-run": [
        "safety/test_folders.py::test_a_sidecar_starts_again_though_its_logs_are_gone",
        "files/test_files.py::test_a_log_is_never_a_reason_not_to_run",
    ],
    "S20-nobody-survives-and-nobody-foreign-dies": [
        "real/test_awkward.py::test_nuke_leaves_nobody",
        "real/test_only_ours.py::test_a_users_own_claude_lives",
        "delivery/test_nudge_queue_killed.py::test_each_nudge_is_delivered_once_and_in_order",
        "supervise/test_plan_histories.py::test_histories",
    ],
    "D8-the-memory-that-belongs-to-the-task": [
        "memory/test_briefing.py::test_relevance_comes_before_confidence_whatever_the_store_holds",
        "memory/test_briefing.py::test_a_rare_word_counts_for_more_than_common_ones",
        "memory/test_briefing.py::test_a_word_for_the_same_matter_counts_in_part_and_explain_says_so",
    ],
    "D9-no-memory-vanishes": [
        "memory/test_archive.py::test_an_import_beyond_the_cap_says_so_and_loses_nothing",
        "memory/test_archive.py::test_a_foreign_file_of_thousands_keeps_them_all",
        "memory/test_archive.py::test_each_drop_is_a_line_that_says_why",
    ],
    "D10-a-conflict-is-no-empty-memory": [
        "memory/test_versions.py::test_a_file_with_conflict_marks_is_neither_empty_nor_written_over",
        "memory/test_versions.py::test_a_merge_in_git_joins_two_branches",
    ],
    "D11-a-party-is-bounded-goes-on-and-counts-only-at-its-end": [
        "memory/test_party_run.py::test_a_bad_turn_is_asked_for_once_more_and_then_skipped",
        "memory/test_party_run.py::test_a_party_stops_at_its_budget_and_goes_on_where_it_was",
        "memory/test_party_run.py::test_a_server_that_breaks_off_leaves_a_record_that_can_be_saved",
        "memory/test_party.py::test_a_party_that_crashed_is_no_session_until_its_record_is_found",
    ],
    "D9-what-others-remember-is-imported-whole": [
        "memory/test_bridges.py::test_points_rows_log_entries_and_paragraphs_are_memories",
        "memory/test_bridges.py::test_what_is_too_long_is_cut_between_sentences_and_nothing_is_lost",
        "memory/test_bridges.py::test_the_clients_memory_is_read_and_written_in_a_part_of_its_own",
    ],
    "D12-what-is-true-now-and-what-is-a-secret": [
        "memory/test_same_subject.py::test_the_same_subject_with_another_value_contradicts",
        "memory/test_same_subject.py::test_another_matter_is_neither",
        "memory/test_protocol.py::test_a_contradiction_replaces_what_was_true_and_keeps_it_in_its_history",
        "memory/test_lint.py::test_what_stands_side_by_side_is_named",
        "memory/test_secret_rules.py::test_each_issuers_form_is_known_by_its_name",
        "memory/test_secret_rules.py::test_a_secret_is_recognised",
    ],
    "V1-a-dialog-is-told": [
        "state/test_state.py::test_an_agent_at_a_dialog_waits_and_the_question_is_told",
        "agents/test_screen.py::test_what_a_dialog_asks",
    ],
    "V3-why-it-died-stays": [
        "state/test_state.py::test_why_an_agent_died_stays",
        "state/test_state.py::test_the_screen_of_one_who_was_nuked_stays_without_colours",
        "state/test_state.py::test_the_foreground_witness_tells_what_happens",
    ],
    "V4-attach-names-the-recorded-server": ["state/test_state.py::test_attach_names_the_recorded_server"],
    "V5-a-dead-pid-is-never-shown-as-running": [
        "state/test_state.py::test_a_dead_pid_is_never_shown_as_running_also_without_a_witness",
    ],
    "V6-what-the-witness-knows-is-shown": [
        "state/test_state.py::test_what_the_client_reports_is_told",
        "state/test_state.py::test_what_the_agent_has_used_is_told_and_stays",
        "state/test_state.py::test_what_became_of_each_line_is_told",
        "state/test_state.py::test_a_change_is_told_soon",
        "state/test_metrics.py::test_each_fact_of_the_state_is_a_line",
        "notify/test_telling.py::",
    ],
    "V7-nothing-is-cut": ["cli/test_whole_output.py::"],
    "V12-hooks-that-are-switched-off-are-told": [
        "doctor/test_client_checks.py::test_hooks_that_are_switched_off_are_a_warning_before_any_polecat",
        "agents/test_channels.py::test_settings_that_switch_hooks_off_leave_the_pane",
    ],
    "V13-what-is-old-goes": [
        "supervise/test_retention.py::test_the_bulk_goes_first_and_all_of_it_later",
        "supervise/test_retention.py::test_pages_go_back_to_the_disk_while_others_write",
    ],
    "V15-a-silent-build-is-not-hung-and-a-still-frame-not-idle": [
        "supervise/test_witness.py::test_a_silent_build_is_not_hung_and_its_child_counts",
        "supervise/test_plan.py::test_a_tree_that_uses_the_processor_is_not_hung_however_silent",
        "state/test_state.py::test_a_still_frame_that_is_not_known_is_unknown",
    ],
    "V2-the-demo-shows-the-scripted-agent-whatever-is-set": [
        "cli/test_demo.py::test_a_key_and_a_client_do_not_change_what_it_shows",
        "cli/test_demo.py::test_the_real_clients_question_about_the_demos_folder_is_answered",
    ],
    "V8-a-slip-in-the-settings-keeps-nobody-from-ending": [
        "cli/test_config.py::test_a_fault_in_the_settings_keeps_nobody_from_looking_and_ending",
    ],
    "V9-all-faults-before-anything-starts": [
        "cli/test_spawn_check.py::test_every_fault_of_a_type_is_named_and_nothing_starts",
        "cli/test_mistakes.py::test_it_ends_in_one_line_that_says_what_to_do",
        "declare/test_molecule.py::test_all_faults_at_once",
    ],
    "V10-a-sidecar-that-can-never-speak-says-so": [
        "cli/test_spawn_check.py::test_a_sidecar_that_can_never_speak_says_so",
        "cli/test_spawn_check.py::test_only_and_not_tell_a_scope_sidecar_that_is_added",
    ],
    "V11-a-key-that-comes-later-is-taken": [
        "trust/test_keys.py::test_a_key_that_is_exported_later_works_and_shows_nowhere",
        "cli/test_key_of_a_running_witness.py::test_it_says_what_it_has_and_takes_what_is_set",
        "cli/test_key_of_a_running_witness.py::test_a_key_that_no_unit_would_see_is_told",
    ],
    "V14-units-that-hold": [
        "supervise/test_service_units.py::test_the_systemd_unit_is_well_formed",
        "supervise/test_service_units.py::test_a_unit_takes_over_from_a_witness_in_the_background",
        "supervise/test_service_units.py::test_it_tells_its_service_manager_that_it_is_ready_and_that_it_lives",
    ],
    "V16-settings-tasks-and-worlds-that-are-not-like-ours": [
        "test_settings.py::test_every_setting_stands_on_its_page_with_its_default",
        "cli/test_config.py::test_each_value_is_told_with_its_default_and_its_place",
        "cli/test_spawn_task.py::test_the_task_is_told_as_it_was_written_and_the_closing_stands_apart",
        "cli/test_help_finds_people.py::test_the_names_in_the_town_are_completed",
        "cli/test_help_finds_people.py::test_near_polecats_sidecars_commands_and_keys_are_offered",
        "cli/test_upgrade_and_leaving.py::",
    ],
    "what-a-hook-is-given-and-gives": [
        "hooks/test_gt_hook.py::test_an_empty_nonblocking_input_is_waited_for",
        "hooks/test_gt_hook.py::test_a_whole_object_is_the_whole_input_though_the_pipe_stays_open",
        "hooks/test_gt_hook.py::test_one_long_nudge_stays_below_what_the_client_hands_on",
    ],
    "what-cannot-be-looked-at-is-not-dead": [
        "process/test_table.py::test_what_cannot_be_looked_at_is_unknown_and_not_dead",
    ],
}


@pytest.mark.parametrize("finding", FINDINGS)
def test_each_finding_has_tests_of_its_kind(finding: str) -> None:
    for place in FINDINGS[finding]:
        file, _, name = place.partition("::")
        wanted = rf"^def {name}\(" if name else "^def test_"
        assert re.search(wanted, (ROOT / file).read_text(), re.MULTILINE), place


@pytest.mark.parametrize(("letter", "most"), [("T", 13), ("S", 20), ("V", 16)])
def test_no_finding_is_left_out(letter: str, most: int) -> None:
    named = {name.partition("-")[0] for name in FINDINGS}
    assert {f"{letter}{each}" for each in range(1, most + 1)} <= named
