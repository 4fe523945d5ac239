"""What a screen shows: an idle prompt, work, a dialog and what it asks; and UNKNOWN where that is not certain."""

from __future__ import annotations

from pathlib import Path

import pytest

from witness.agents.clients import ANY, CLAUDE, CODEX, GEMINI, OPENCODE, Client
from witness.agents.screen import PromptState, WaitsFor, plain, read_prompt, read_trouble

SCREENS = Path(__file__).parent / "screens"
RULE = "─" * 80
FOOT = "  ? for shortcuts\n"


@pytest.mark.parametrize(
    ("file", "state"),
    [
        ("01-idle-prompt.txt", PromptState.IDLE),
        ("02-typed-not-submitted.txt", PromptState.TYPED),
        ("03-spinner-waiting-model.txt", PromptState.BUSY),
        ("04-read-group-running.txt", PromptState.BUSY),
        ("05-bash-running.txt", PromptState.BUSY),
        ("06-edit-diff.txt", PromptState.BUSY),
        ("07-turn-done-long-output.txt", PromptState.IDLE),
        ("08-permission-dialog.txt", PromptState.DIALOG),
    ],
)
def test_real_screens_of_claude_code(file: str, state: PromptState) -> None:
    assert read_prompt((SCREENS / file).read_text(), CLAUDE).state is state


@pytest.mark.parametrize(
    ("screen", "client", "state"),
    [
        (f'{RULE}\n❯ \x1b[2mTry "fix lint"\x1b[22m\n{RULE}\n{FOOT}', CLAUDE, PromptState.IDLE),
        (f"{RULE}\n❯ \x1b[2mTry\x1b[0m mine\n{RULE}\n", CLAUDE, PromptState.TYPED),
        (f"{RULE}\n❯\u00a0\n{RULE}\n{FOOT}", CLAUDE, PromptState.IDLE),
        (f"{RULE}\n❯ \n  second line\n{RULE}\n", CLAUDE, PromptState.TYPED),
        ("❯ \nsomething that only looks like it\n", CLAUDE, PromptState.UNKNOWN),
        (f"❯ said before\n{RULE}\n Do you want to proceed?\n ❯ 1. Yes\n Esc to cancel\n", CLAUDE, PromptState.DIALOG),
        ("", CLAUDE, PromptState.UNKNOWN),
        ("\x1b[1m›\x1b[0m \x1b[2mAsk Codex to do anything\n  ? for shortcuts", CODEX, PromptState.IDLE),
        ("• Working (2s • esc to interrupt)\n\n\x1b[1m›\x1b[0m \x1b[2mAsk Codex\n", CODEX, PromptState.BUSY),
        ("› hello there\n  gpt default · ~/w", CODEX, PromptState.TYPED),
        ("  Allow command?\n› 1. Yes, proceed (y)\n  2. No\n  Press enter to confirm", CODEX, PromptState.DIALOG),
        (" > \x1b[7m \x1b[0m Type your message or @path/to/file\n workspace", GEMINI, PromptState.IDLE),
        (" ⠋ Thinking... (esc to cancel, 2s)\n >   Type your message or @path/to/file", GEMINI, PromptState.BUSY),
        (" > hello there\n workspace", GEMINI, PromptState.TYPED),
        (" *   Type your message or @path/to/file\n", GEMINI, PromptState.IDLE),
        ("anything\n$ ", ANY, PromptState.UNKNOWN),
    ],
)
def test_what_a_screen_shows(screen: str, client: Client, state: PromptState) -> None:
    assert read_prompt(screen, client).state is state


# -- rest must be proven ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("above", "state"),
    [
        ("✶ Compacting conversation…", PromptState.UNKNOWN),
        ("✶ Compacting conversation… (31s)", PromptState.UNKNOWN),
        ("⠹ Indexing the repository", PromptState.UNKNOWN),
        ("✻ Running the hooks of Stop", PromptState.UNKNOWN),
        ("  ⎿  Waiting...", PromptState.UNKNOWN),
        ("Reconnecting… (attempt 3/10)", PromptState.UNKNOWN),
        ("✻ Churned for 16s", PromptState.IDLE),
        ("✻ Crunched for 1m 6s", PromptState.IDLE),
        ("  - ran the tests", PromptState.IDLE),
        ("     … +57 lines (ctrl+o to expand)", PromptState.IDLE),
    ],
)
def test_an_empty_prompt_rests_only_below_what_is_finished(above: str, state: PromptState) -> None:
    assert read_prompt(f"● ready\n\n{above}\n\n{RULE}\n❯\u00a0\n{RULE}\n{FOOT}", CLAUDE).state is state


def test_an_empty_prompt_without_a_sign_of_rest_is_unknown() -> None:
    assert read_prompt(f"● ready\n\n{RULE}\n❯ \n{RULE}\n  something new\n", CLAUDE).state is PromptState.UNKNOWN


# -- dialogs --------------------------------------------------------------------------------------------------------

MENU = " ❯ 1. Yes\n   2. No\n"


@pytest.mark.parametrize(
    ("dialog", "client", "waits_for", "question"),
    [
        (f"{RULE}\n Create file\n Do you want to create new.py?\n{MENU}\n Esc to cancel", CLAUDE, "permission",
         "Create file · Do you want to create new.py?"),
        (f"{RULE}\n Bash command\n\n   rm -rf build\n\n Do you want to proceed?\n{MENU}", CLAUDE, "permission",
         "Bash command · rm -rf build · Do you want to proceed?"),
        (f"{RULE}\n Bash command\n\n   git log --grep login\n\n Do you want to proceed?\n{MENU}", CLAUDE,
         "permission", "Bash command · git log --grep login · Do you want to proceed?"),
        (f"{RULE}\n Accessing workspace:\n\n /srv/repo\n\n Quick safety check: Is this a project you created or one"
         " you trust?\n\n ❯ 1. Yes, I trust this folder\n   2. No, exit\n\n Enter to confirm · Esc to cancel", CLAUDE,
         "trust", "Quick safety check: Is this a project you created or one you trust?"),
        ("Do you trust the files in this folder?\n\n● 1. Trust folder\n  2. Don't trust\n", GEMINI, "trust",
         "Do you trust the files in this folder?"),
        (" Select login method:\n\n ❯ 1. Claude account with subscription\n   2. Anthropic Console account\n", CLAUDE,
         "login", "Select login method:"),
        (f"{RULE}\n Detected a custom API key in your environment\n\n Do you want to use this API key?\n{MENU}", CLAUDE,
         "login", "Do you want to use this API key?"),
        (" Choose the text style that looks best with your terminal\n\n ❯ 1. Dark mode\n   2. Light mode\n", CLAUDE,
         "onboarding", "Choose the text style that looks best with your terminal"),
        (f"{RULE}\n New MCP server found in .mcp.json: tracker\n{MENU}\n Enter to confirm", CLAUDE, "mcp",
         "New MCP server found in .mcp.json: tracker"),
        (f"{RULE}\n You've hit your limit · resets 9pm\n What do you want to do?\n ❯ 1. Stop and wait for it\n"
         "   2. Upgrade\n", CLAUDE, "limit", "You've hit your limit · resets 9pm · What do you want to do?"),
        (f"{RULE}\n ☐ Database\n\n Which database should the service use?\n\n ❯ 1. SQLite\n   2. Postgres\n\n"
         " Enter to select · Esc to cancel", CLAUDE, "question",
         "☐ Database · Which database should the service use?"),
        (f"{RULE}\n ☐ Login\n\n Which login should we allow?\n\n ❯ 1. Password\n   2. Key\n", CLAUDE, "question",
         "☐ Login · Which login should we allow?"),
        ("  Would you like to run the following command?\n\n  $ touch x\n\n› 1. Yes, proceed (y)\n  2. No (esc)\n\n"
         "  Press enter to confirm or esc to cancel", CODEX, "permission",
         "Would you like to run the following command?"),
        ("Which colour?\n> 1) red\n  2) blue\n", ANY, "question", "Which colour?"),
        ("Allow edit?\n❯ 1. Once\n  2. Always\n", OPENCODE, "permission", "Allow edit?"),
    ],
)  # fmt: skip
def test_what_a_dialog_asks(dialog: str, client: Client, waits_for: str, question: str) -> None:
    seen = read_prompt(f"● Write(billing/new.py)\n\n{dialog}\n", client)
    assert (seen.state, seen.waits_for, seen.question) == (PromptState.DIALOG, WaitsFor(waits_for), question)


def test_numbers_that_nobody_points_at_are_no_dialog() -> None:
    assert read_prompt("Plan:\n  1. look\n  2. mend\n", CLAUDE).state is PromptState.UNKNOWN


def test_a_question_is_one_bounded_line_without_escapes() -> None:
    screen = f"{RULE}\n \x1b[1mDo you\x1b[0m want \x07to {'x' * 500}?\n{MENU}"
    question = read_prompt(screen, CLAUDE).question
    assert question.startswith("Do you want to x")
    assert len(question) == 300
    assert plain("a\x1b]0;title\x07b\x1b[31mc\rd") == "abcd"


@pytest.mark.parametrize(
    ("line", "waits_for"),
    [
        ("  ⎿  Invalid API key · Please run /login", WaitsFor.LOGIN),
        ("  ⎿  5-hour limit reached ∙ resets 3pm", WaitsFor.LIMIT),
        ("  ⎿  API Error (Connection error.) · Retrying in 8 seconds… (attempt 5/10)", WaitsFor.NETWORK),
    ],
)
def test_trouble_that_a_person_has_to_mend(line: str, waits_for: WaitsFor) -> None:
    seen = read_trouble(f"● ready\n{line}\n\n{RULE}\n❯ \n{RULE}\n{FOOT}")
    assert seen
    assert seen.waits_for is waits_for
    assert read_trouble(f"● ready\n\n{RULE}\n❯ \n{RULE}\n{FOOT}") is None
