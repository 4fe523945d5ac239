"""Python functions as judges: what they are given, what they return, and how they are called.

A sidecar whose type says ``judge: python`` puts each completed action to the function that the type names
(``function:``, else the type's own name). A function that is installed under that name, as an entry point of the group
``gt_witness.judges``, is called in the sidecar itself; any other belongs to a process that gave it to
``Witness(town, judges={name: function})``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from types import CoroutineType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from witness.errors import UsageError, WitnessError
from witness.installed import describe, load
from witness.judging.observation import Observation

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_LONGEST_COMPLAINT = 300


@dataclass(frozen=True, slots=True)
class Report:
    """What a function has to say to the agent about one action.

    Args:
        message: one or two sentences of fact; empty beside a snippet.
        evidence: what of the action shows it, copied from ``observation.rendered()``; a remark whose evidence does not
            stand there is not said. When empty, the first line that names a file or the command.
        confidence: how sure; what is below the type's threshold is recorded and not said.
        snippet: name of a text of the type's ``snippets.yaml``, said in place of the message.

    Examples:
        >>> from witness import JudgeContext, Observation, Report
        >>> def no_print(seen: Observation, context: JudgeContext) -> Report | None:
        ...     if "print(" in seen.text:
        ...         return Report(f"{seen.paths[0]} prints.", evidence="print(")
        ...     return None
        >>> seen = Observation("1", tool="Edit", written=("a.py",), text="print(1)")
        >>> no_print(seen, JudgeContext("no-print")).message
        'a.py prints.'
    """

    message: str = ""
    evidence: str = ""
    confidence: Literal["low", "medium", "high"] = "high"
    snippet: str = ""


@dataclass(frozen=True, slots=True)
class JudgeContext:
    """What a function may want to know beside the action.

    Args:
        sidecar: name of the sidecar's type.
        documents: title and text of each document that the type's ``context`` names.
        said: what has been said to the agent in this run already, oldest first.
    """

    sidecar: str
    documents: tuple[tuple[str, str], ...] = ()
    said: tuple[str, ...] = ()


JudgeFunction: TypeAlias = Callable[[Observation, JudgeContext], Report | None]
"""A judge: called with each completed action, oldest first; None means that nothing needs saying.

It has 5 s for all actions of a look together (the type's ``timeout``), and one thread at a time calls it. Whatever it
raises is silence, and stands in the sidecar's log with its reason.
"""


def check_judge(name: str, function: object = None) -> None:
    """Refuse what cannot be a judge.

    Raises:
        UsageError: the name has other characters than letters, digits, ``-`` and ``_`` or is too long.
        TypeError: the function cannot be called.
    """
    if not _NAME.fullmatch(name):
        raise UsageError(f"judge {name!r} is not a usable name: letters, digits, '-' and '_', at most 64")
    if function is not None and not callable(function):
        raise TypeError(f"judge {name!r} is {type(function).__name__}, and no function")


def question_of(
    sidecar: str, documents: Sequence[tuple[str, str]], seen: Sequence[Observation], said: Sequence[str]
) -> dict[str, Any]:
    """What a judge in another process is asked, as JSON."""
    return {
        "sidecar": sidecar,
        "context": [{"title": title, "text": text} for title, text in documents],
        "said": list(said),
        "observations": [asdict(observation) | {"rendered": observation.rendered()} for observation in seen],
    }


def answer_to(function: JudgeFunction, question: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Put a question to a function.

    Args:
        function: which.
        question: as ``question_of`` made it.

    Returns:
        For each observation a report as ``report_signal`` takes it, in their order.

    Raises:
        ValueError: the function raised or returned anything else; one line says what.
    """
    documents = tuple((each["title"], each["text"]) for each in question["context"])
    context = JudgeContext(question["sidecar"], documents, tuple(question["said"]))
    reports = []
    for each in question["observations"]:
        seen = Observation.from_json(each)
        try:
            report: object = function(seen, context)
        # Whatever it is, exits included: it is somebody else's code, and ends nobody else's process.
        except BaseException as error:
            words = " ".join(str(error).split())[:_LONGEST_COMPLAINT]
            raise ValueError(f"it raised {type(error).__name__}: {words}") from error
        if isinstance(report, CoroutineType):
            report.close()
        if report is not None and not isinstance(report, Report):
            raise ValueError(f"it returned {type(report).__name__}, which is neither a witness.Report nor None")
        said: dict[str, Any] = {"signal": False} if report is None else {"signal": True, **asdict(report)}
        if report is not None and not report.evidence:
            said["evidence"] = _shown(seen)
        reports.append(said | {"observation": seen.id})
    return reports


def _shown(seen: Observation) -> str:
    lines = seen.rendered().splitlines() or [""]
    return next((line for line in lines if line.startswith(("wrote: ", "opened: ", "command: "))), lines[0])


def import_judge(found: EntryPoint) -> JudgeFunction:
    """Import an installed judge.

    Raises:
        WitnessError: it cannot be imported, or is no function; one line names its package.
    """
    function = load(found)
    if not callable(function):
        raise WitnessError(f"{describe(found)} cannot be used: it is {type(function).__name__}, and no function")
    return function  # type: ignore[no-any-return]
