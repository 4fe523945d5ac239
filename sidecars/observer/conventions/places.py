"""Where a sentence holds: languages, folders, tests, and what it excepts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from sidecars.observer.conventions.sentences import Sentence, spans
from sidecars.type_reader.sidecar_type import Rule

_LANGUAGES: Mapping[str, tuple[str, ...]] = {
    "python": ("*.py", "*.pyi"),
    "typescript": ("*.ts", "*.tsx", "*.mts", "*.cts"),
    "javascript": ("*.js", "*.jsx", "*.mjs", "*.cjs", "*.ts", "*.tsx"),
    "go": ("*.go",),
    "golang": ("*.go",),
    "rust": ("*.rs",),
    "java": ("*.java",),
    "kotlin": ("*.kt",),
    "ruby": ("*.rb",),
    "css": ("*.css", "*.scss", "*.less"),
    "sql": ("*.sql",),
    "shell": ("*.sh", "*.bash"),
    "bash": ("*.sh", "*.bash"),
    "react": ("*.jsx", "*.tsx"),
    "swift": ("*.swift",),
    "php": ("*.php",),
}
_LANGUAGE = re.compile(
    r"(?:^|\bin\s+)(?:all\s+|our\s+|the\s+)?("
    + "|".join(_LANGUAGES)
    + r")(?:\s+(?:code|files?|modules?))?\s*(?::|,|;|\.|$|\))",
    re.IGNORECASE,
)
_HEADING = re.compile(
    r"^\W*(?:the\s+)?(" + "|".join(_LANGUAGES) + r")\b(?:\s+(?:code|style|rules|conventions|files?))?\W*$", re.I
)
TESTS = (
    "tests/", "test/", "__tests__/", "spec/", "specs/", "e2e/", "test_*.py", "*_test.py", "conftest.py", "*_test.go",
    "*.test.*", "*.spec.*", "*Test.java", "*Tests.java", "*_spec.rb",
)  # fmt: skip
_KNOWN: Mapping[str, tuple[str, ...]] = {
    r"(?:unit\s+|integration\s+)?tests?(?:\s+(?:code|files?|suites?|helpers?))?|specs?": TESTS,
    r"scripts?(?:\s+folder)?": ("scripts/", "script/", "bin/", "tools/"),
    r"examples?": ("examples/", "example/"),
    r"(?:the\s+)?(?:cli|command[- ]line)(?:\s+\w+)?": ("cli/", "**/cli.py", "**/cli/**", "**/__main__.py"),
    r"migrations?": ("**/migrations/**",),
    r"notebooks?": ("*.ipynb", "notebooks/"),
    r"(?:the\s+)?docs?|documentation": ("docs/", "*.md", "*.rst"),
    r"fixtures?": ("**/fixtures/**",),
    r"benchmarks?": ("benchmarks/", "bench/"),
    r"stories|storybook": ("*.stories.*",),
    r"generated\s+(?:code|files?)": ("generated/", "**/generated/**", "*.gen.*", "*_pb2.py"),
    r"vendor(?:ed)?(?:\s+code)?": ("vendor/", "third_party/"),
    r"`?__main__`?": ("**/__main__.py",),
    r"conf(?:ig(?:uration)?)?(?:\s+files?)?": ("*.config.*", "config/", "**/settings.py"),
    r"type\s+(?:stubs?|declarations?)": ("*.pyi", "*.d.ts"),
}
_LIBRARY = re.compile(r"\bin\s+(?:the\s+|our\s+)?librar(?:y(?:\s+(?:code|modules?))?|ies)\b", re.IGNORECASE)
_NO_LIBRARY = (
    *TESTS,
    "scripts/",
    "bin/",
    "tools/",
    "examples/",
    "cmd/",
    "cli/",
    "**/__main__.py",
    "**/main.*",
    "**/cli.*",
)
_TESTS_ARE = re.compile(
    r"\W*(?:unit\s+|integration\s+)?tests?\s+(?:must|should|do|never|may|are|have|use|can)\b", re.IGNORECASE
)
_OF_TESTS = re.compile(r"\W*(?:unit\s+)?test(?:s|ing)?\W*$", re.IGNORECASE)
_FOLDER = re.compile(
    r"(?:\W*(?:in|inside|within|under|rules\s+for|for|code\s+in)\s+)?`?([\w.@*-]*/[\w./@*-]*)`?"
    r"(?:\s+(?:folder|directory|package|layer|module)|\s*\([^)]*\)|\s*[-–—:].*)?",
    re.IGNORECASE,
)
_ARTICLES = (
    r"(?:(?:the|our|all|any|your|its|a|unit|of|files?\s+(?:in|under|below)|"
    r"anything\s+(?:in|under|below)|code\s+(?:in|under|below))\s+)*"
)
# Python's keyword as a noun: "no bare except in X" is about X and excepts nothing.
_KEYWORD = re.compile(
    r"(?:(?<=bare )|(?<=broad )|(?<=blind )|(?<=blanket )|(?<=naked )|(?<=empty )|(?<=\ban )|(?<=/))except\b"
    r"|\bexcept(?=\s+(?:(?:clause|block|handler|statement)s?|branch(?:es)?)\b|\s+(?:is|are|Exception|BaseException)\b|\s*:)",
    re.IGNORECASE,
)
# "outside of X", "except in X", "but not in X": X is excepted. "in X", "under X": it holds there alone.
_EXCEPT = re.compile(
    rf"\b(?:outside(?:\s+of)?|except(?:\s+(?:for|in|inside|within|under|from))*|but\s+(?:not\s+)?(?:in|for|from)|other\s+than(?:\s+in)?|apart\s+from(?:\s+in)?|aside\s+from(?:\s+in)?|excluding|save\s+for|unless(?:\s+it\s+is)?\s+in|only\s+(?:be\s+)?(?:\w+\s+){{0,2}}(?:in|inside|within|from|under)|belongs?\s+(?:only\s+)?in|reserved\s+for)\s+{_ARTICLES}(?=\S)",
    re.IGNORECASE,
)
_ONLY = re.compile(
    rf"(?<!except )(?<!only )(?<!but )(?<!not )\b(?:in|inside|within|under|below|for)\s+{_ARTICLES}(?=\S)",
    re.IGNORECASE,
)
# They are everywhere.
_NOWHERE = re.compile(
    r"(?:commit\w*|merged|production|prod|shipped|new|this|source|our|application|app|the)\s+(?:\w+\s+)?(?:code|crate|repo(?:sitory)?|project|codebase|package|branch|module)s?|code\s+review|reviews?|general|master|main|any\s+\w+\s*code|code|commits?|pull\s+requests?|PRs?|(?:the\s+)?(?:code\s*base|repo(?:sitory)?|project)",
    re.IGNORECASE,
)
_NAMED = re.compile(r"(?:\w+\s+){0,3}(?:code|modules?|packages?|files?|folder|directory)?\s*\(?(?=`)", re.IGNORECASE)
_MORE = re.compile(r"\s*(?:,\s*(?:and|or)|,|and|or|/|&)\s+(?:in\s+|the\s+)*(?=[`\w])", re.I)
# "Only there": what stands before it is the exception.
_ELSEWHERE = re.compile(
    r"\b(?:any|every)where\s+else\b|\belsewhere\b|\boutside\s+(?:of\s+)?(?:it|that|there|them)\b|`\s+only\b",
    re.IGNORECASE,
)
# "`domain/` must not import …": the place is what the sentence is about.
_SUBJECT = re.compile(
    r"\W*(only\s+)?(?:(?:the\s+)?(?:code|files?|modules?|everything|anything)\s+(?:in|under|below)\s+)?(?=`)",
    re.IGNORECASE,
)
_IS_TOLD = re.compile(
    r"(?:\s+(?:package|layer|module|folder|directory|code|files?))?\s+(?:must|should|may|can|cannot|do|does|never|is\s+not\s+allowed\s+to)\b"
    r"(?:\s+(?:not|never|n['’]t|only))?\s+(?:import|depend|use|call|know|reference|contain|log|print|access|touch\s+the|throw|raise|have)\b",
    re.IGNORECASE,
)
_A_FILE = re.compile(r"[\w./-]*\.\w{1,5}")
_TURN = re.compile(
    r"[^.;,]{0,40}[,;]\s*(?:and\s+)?(?:never|no|not(?!\s+even)|instead|do\s+not|don['’]t)\b", re.IGNORECASE
)
_PATH = re.compile(r"[\w.@*~-]*[/*][\w./@*{},\[\]-]*|\.?[\w-]+\.\w{1,5}|__\w+__(?:\.py)?|\w+")


@dataclass(frozen=True, slots=True)
class Places:
    """Where a sentence holds.

    Args:
        only: globs of the folders that it is about; none means everywhere.
        files: globs of its languages' files; none means any.
        but: globs that it excepts.
        tests: it is about tests alone.
        but_tests: tests are excepted.
        spots: where the sentence speaks of places: what stands there is nothing that it forbids.
    """

    only: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    but: tuple[str, ...] = ()
    tests: bool = False
    but_tests: bool = False
    spots: tuple[tuple[int, int], ...] = ()

    @property
    def languages(self) -> bool:
        """Whether it names languages."""
        return bool(self.files)

    @property
    def given(self) -> bool:
        """Whether it names any place."""
        return bool(self.only or self.files or self.but or self.tests)

    def put_on(self, rule: Rule) -> Rule:
        """A rule that holds there only."""
        if rule.runs and not (rule.writes or rule.creates or rule.changes):
            return rule
        but = self.but + (TESTS if self.but_tests else ())
        wanted = self.only or (TESTS if self.tests else ())
        if self.files and rule.writes and rule.writes != ("**",) and not rule.within:
            kept = tuple(glob for glob in rule.writes if glob in self.files)
            rule = replace(rule, writes=kept or rule.writes)
        elif self.files and not (rule.creates or rule.changes or rule.adds_dependency):
            rule = replace(rule, writes=self.files)
        if wanted:
            rule = replace(rule, within=wanted)
        return replace(rule, but_not=(*rule.but_not, *but))


def blanked(text: str, spots: Iterable[tuple[int, int]]) -> str:
    """A text with some stretches blanked."""
    for start, end in spots:
        text = text[:start] + " " * (end - start) + text[end:]
    return text


def without_keywords(text: str) -> str:
    """A text in which no keyword of a language reads as an English preposition; of the same length."""
    return _KEYWORD.sub("clause", text)


def places_of(sentence: Sentence) -> Places:
    """Where a sentence holds, by its own words and the headings above it."""
    text = without_keywords(sentence.text)
    found = _Spots(text)
    found.read(_EXCEPT, excepts=True)
    found.read(_ONLY, excepts=_ELSEWHERE.search(text) is not None)
    found.read_subject()
    for library in _LIBRARY.finditer(text):
        if not found.holds(library.start()):
            found.spots.append(library.span())
            found.but += _NO_LIBRARY
    files: tuple[str, ...] = ()
    if language := _LANGUAGE.search(blanked(text, found.spots)):
        files = _LANGUAGES[language[1].lower()]
        if language[0].lower().startswith("in"):
            found.spots.append(language.span())
    else:
        named = (_HEADING.match(heading) for heading in reversed(sentence.headings))
        files = next((_LANGUAGES[each[1].lower()] for each in named if each), ())
    if not (found.only or found.but or found.tests):
        found.only = next(filter(None, map(_folder, reversed(sentence.headings))), [])
    tests = found.tests or _TESTS_ARE.match(text) is not None or any(map(_OF_TESTS.match, sentence.headings))
    return Places(tuple(found.only), files, tuple(found.but), tests, spots=tuple(sorted(found.spots)))


def _folder(heading: str) -> list[str]:
    """The folder that a heading names and nothing else: what stands below is about it."""
    named = _FOLDER.fullmatch(heading.strip())
    return list(_globs(named[1])) if named else []


class _Spots:
    """The places that a sentence names, as far as they are read."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._marks = {start: (end, inner) for start, end, inner in spans(text)}
        self.spots: list[tuple[int, int]] = []
        self.but: list[str] = []
        self.only: list[str] = []
        self.tests = False

    def holds(self, at: int) -> bool:
        """Whether a position lies within a place that was read."""
        return any(start <= at < end for start, end in self.spots)

    def read_subject(self) -> None:
        """Read the place that the sentence begins with, where it is told what must not be done there."""
        found = _SUBJECT.match(self._text)
        if found and found.end() in self._marks and not self.holds(found.end()):
            end, inner = self._marks[found.end()]
            if (named := _globs(inner)) and _IS_TOLD.match(self._text, end):
                (self.but if found[1] else self.only).extend(named)
                self.spots.append((found.start(), end))

    def read(self, expression: re.Pattern[str], *, excepts: bool) -> None:
        """Read the places behind a preposition."""
        for found in expression.finditer(self._text):
            named, end = _named(self._text, found.end(), self._marks)
            if not named or self.holds(found.start()):
                continue
            if not excepts and _A_FILE.fullmatch(named[0]) and _TURN.match(self._text, end):
                continue  # "raise what stands in `errors.py`, never …": where the right thing is, not where it holds
            self.spots.append((found.start(), end))
            if named == ("",):
                continue
            if excepts:
                self.but += named
            elif named == TESTS:
                self.tests = True
            else:
                self.only += named


def _named(text: str, at: int, marks: Mapping[int, tuple[int, str]]) -> tuple[tuple[str, ...], int]:
    """The globs of the place that is named at a position, and where its name ends; nothing when it is none."""
    rest = text[at:]
    globs, end = _known(text, at)
    if globs:
        if end in marks and (named := _globs(marks[end][1])):
            return _further(text, marks[end][0], marks, named)
        return _further(text, end, marks, globs)
    if found := _NAMED.match(rest):
        end = at + found.end()
        if end in marks and (named := _globs(marks[end][1])):
            close = marks[end][0]
            return _further(text, close + (text[close : close + 1] == ")"), marks, named)
    if found := _NOWHERE.match(rest):
        return ("",), at + found.end()
    if found := re.match(r"[\w.-]+/[\w./*-]*", rest):
        return _globs(found[0]), at + found.end()
    return (), at


def _further(
    text: str, end: int, marks: Mapping[int, tuple[int, str]], globs: tuple[str, ...]
) -> tuple[tuple[str, ...], int]:
    while found := _MORE.match(text, end):
        if found.end() in marks:
            stop, inner = marks[found.end()]
            more = _globs(inner)
        else:
            more, stop = _known(text, found.end())
        if not more:
            break
        globs, end = (*globs, *more), stop
    return globs, end


def _known(text: str, at: int) -> tuple[tuple[str, ...], int]:
    """The globs of a place that is named by a word: ``tests``, ``scripts``; and where the word ends."""
    for words, globs in _KNOWN.items():
        if found := re.compile(rf"(?:{words})(?![\w`-])(?:\s*\(?(?=`))?", re.IGNORECASE).match(text, at):
            return globs, found.end()
    return (), at


def _globs(path: str) -> tuple[str, ...]:
    """The globs that a path in backquotes means; nothing when it is none."""
    path = path.strip().removeprefix("./").removesuffix("...")
    if not path or not _PATH.fullmatch(path):
        return ()
    if "/" not in path and "." not in path and "*" not in path and not path.startswith("__"):
        return ()
    if re.fullmatch(r"__\w+__", path):
        return (f"**/{path}.py",)
    return (path,)
