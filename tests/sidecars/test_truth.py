"""Where each kind of untruth of the first release is kept from coming back: the finding, and the tests of its kind.

A test that is taken away without its finding being thought of fails here.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
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
}


@pytest.mark.parametrize("finding", FINDINGS)
def test_each_finding_has_tests_of_its_kind(finding: str) -> None:
    for place in FINDINGS[finding]:
        file, _, name = place.partition("::")
        assert re.search(rf"^def {name or 'test_'}", (ROOT / file).read_text(), re.MULTILINE), place
