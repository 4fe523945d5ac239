"""Questions with known answers, and the files that they are asked of.

``tune.yaml`` is for looking at while ranking is worked on, ``measure.yaml`` for figures only. Each question has:

- ``artifact``: ``made:NAME`` (written by ``generate.py``) or ``PACKAGE:PATH`` (taken out of an archive of
  ``packages.yaml``, whose hash must match);
- ``evidence``: what the quotes must hold. ``text`` is compared without blanks, quotation marks and backslashes; where
  it stands more than once in the artifact, the quote must also be at ``line`` or at the JSON pointer ``at``, or hold
  ``with``;
- ``count``: for "how many", the right ``value`` and its ``meaning``.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import yaml

from tests.bench.distill_corpus.generate import MADE

HERE = Path(__file__).parent
CACHE = HERE.parents[2] / ".cache" / "bench-corpus"
HALVES = ("tune", "measure")


@dataclass(frozen=True, slots=True)
class Evidence:
    """One thing that must be quoted.

    Args:
        text: a part of the artifact.
        line: its line, counted from 1; 0 where the artifact has no lines (PDF, docx, HTML).
        at: its JSON pointer, where that is needed to tell it apart.
        beside: a text that tells the quote apart too, when it stands in the same quote.
    """

    text: str
    line: int = 0
    at: str = ""
    beside: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    """One question of one half.

    Args:
        name: its id.
        kind: log, data, csv, notebook, source, prose or document.
        artifact: where the answer is, in the notation of the YAML files.
        text: the question.
        evidence: what must be quoted.
        count: the right number, None where none is asked for.
    """

    name: str
    kind: str
    artifact: str
    text: str
    evidence: tuple[Evidence, ...]
    count: int | None


def questions(half: str) -> list[Question]:
    """The questions of ``tune`` or ``measure``."""
    return [
        Question(
            each["id"],
            each["kind"],
            each["artifact"],
            each["question"],
            tuple(
                Evidence(one["text"], one.get("line", 0), one.get("at", ""), one.get("with", ""))
                for one in each.get("evidence", ())
            ),
            each["count"]["value"] if "count" in each else None,
        )
        for each in yaml.safe_load((HERE / f"{half}.yaml").read_text())
    ]


def artifact(name: str, cache: Path = CACHE) -> Path:
    """The file of an artifact, made or fetched when it is not there yet.

    Raises:
        ValueError: the archive is not the one that the labels were written for.
    """
    source, _, inside = name.partition(":")
    # Whatever the generator makes now replaces what an older one left.
    folder = cache / f"made-{_digest(HERE / 'generate.py')[:12]}" if source == "made" else cache / source
    path = folder / inside
    if path.exists():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.part")
    if source == "made":
        MADE[inside](draft)
    else:
        draft.write_bytes(_member(source, inside, cache / "archives"))
    return draft.rename(path)


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _member(package: str, inside: str, folder: Path) -> bytes:
    known = yaml.safe_load((HERE / "packages.yaml").read_text())[package]
    archive = folder / known["archive"]
    if not archive.exists():
        folder.mkdir(parents=True, exist_ok=True)
        _fetch(package, known, folder)
    if (found := _digest(archive)) != known["sha256"]:
        raise ValueError(
            f"{archive}: sha256 is {found}, the labels are for {known['sha256']}; remove the file to fetch it"
        )
    member = "/".join(part for part in (known.get("root"), inside) if part)
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as unpacked:
            return unpacked.read(member)
    with tarfile.open(archive) as unpacked:
        found_file = unpacked.extractfile(member)
        assert found_file is not None, member
        return found_file.read()


def _fetch(package: str, known: dict[str, str], folder: Path) -> None:
    if known["registry"] == "npm":
        command = ["npm", "pack", "--silent", f"{package}@{known['version']}"]
    else:
        binary = "--only-binary" if known["archive"].endswith(".whl") else "--no-binary"
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        command = [*pip, binary, ":all:", f"{package}=={known['version']}"]
    subprocess.run(command, cwd=folder, check=True, timeout=300, stdout=subprocess.DEVNULL)


@cache
def readable(path: Path) -> list[str]:
    """The lines of an artifact as a reader would see them: documents as their text, all else as it stands."""
    if path.suffix == ".pdf":
        from pypdf import PdfReader

        return [line for page in PdfReader(path).pages for line in page.extract_text().splitlines()]
    if path.suffix == ".docx":
        import docx

        document = docx.Document(str(path))
        rows = [" | ".join(cell.text for cell in row.cells) for table in document.tables for row in table.rows]
        return [paragraph.text for paragraph in document.paragraphs] + rows
    text = path.read_text()
    if path.suffix == ".html":
        page = _Page()
        page.feed(text)
        return [line for block in "".join(page.text).split("\0") if (line := " ".join(block.split()))]
    return text.split("\n")


class _Page(HTMLParser):
    _BLOCKS = re.compile(r"p|div|li|[uo]l|h[1-6]|tr|table|pre|br|nav|section|title|d[td]")

    def __init__(self) -> None:
        super().__init__()
        self.text: list[str] = []
        self._hidden = 0

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self._hidden += tag in ("script", "style")
        self.text.append("\0" if self._BLOCKS.fullmatch(tag) else " " if tag == "td" else "")

    def handle_endtag(self, tag: str) -> None:
        self._hidden -= tag in ("script", "style")
        self.text.append("\0" if self._BLOCKS.fullmatch(tag) else "")

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.text.append(data)


def squeezed(text: str, markup: bool = False) -> str:
    """A text without what may differ between an artifact and a quote of it: blanks, quotation marks, escapes, tags."""
    if markup:
        text = unescape(re.sub(r"</?[a-zA-Z][^>]*>", "", text))
    return re.sub(r"[\s\"'\\]+", "", text.replace("\\n", ""))


@cache
def _whole(path: Path) -> str:
    return squeezed("\n".join(readable(path)))


@cache
def occurrences(path: Path, text: str) -> int:
    """How often a text stands in an artifact."""
    return _whole(path).count(squeezed(text))


@dataclass(frozen=True, slots=True)
class Quote:
    """A passage that was handed over.

    Args:
        text: the passage.
        locator: ``L3``, ``L3-L9`` or a JSON pointer, as ``gt distill`` gives it.
    """

    text: str
    locator: str


def carries(quote: Quote, wanted: Evidence, path: Path) -> bool:
    """Whether a quote holds a piece of evidence, and not merely the same words from elsewhere."""
    markup = path.suffix == ".html"
    text = squeezed(quote.text, markup)
    if squeezed(wanted.text, markup) not in text:
        return False
    if occurrences(path, wanted.text) == 1 or (wanted.beside and squeezed(wanted.beside) in text):
        return True
    if lines := re.match(r"L(\d+)(?:-L?(\d+))?", quote.locator):
        first = int(lines[1])
        return first <= wanted.line <= int(lines[2] or first)
    here, there = quote.locator.rstrip("/") + "/", wanted.at + "/"
    return bool(wanted.at) and quote.locator.startswith("/") and (there.startswith(here) or here.startswith(there))


def faults(question: Question, cache: Path = CACHE) -> Iterator[str]:
    """What is wrong with a question's labels, held against its artifact."""
    path = artifact(question.artifact, cache)
    lines = readable(path)
    for wanted in question.evidence:
        times = occurrences(path, wanted.text)
        if not times:
            yield f"{question.name}: not in the artifact: {wanted.text}"
        elif times > 1 and not (wanted.line or wanted.at or wanted.beside):
            yield f"{question.name}: stands {times} times and nothing tells which: {wanted.text}"
        if wanted.line and squeezed(wanted.text) not in squeezed("".join(lines[wanted.line - 1 : wanted.line + 4])):
            yield f"{question.name}: not at line {wanted.line}: {wanted.text}"
    if not question.evidence and question.count is None:
        yield f"{question.name}: neither evidence nor a count"
