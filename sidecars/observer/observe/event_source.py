"""Where a sidecar's observations come from while it lives: the spool of events."""

from __future__ import annotations

from collections.abc import Iterable

from sidecars.observer.observe.events import EventReader, ends_turn, may_go_on
from sidecars.type_reader.sidecar_type import SidecarType, tool_filter
from witness.assignment import Assignment
from witness.events.spool_reader import SpooledEvent, SpoolReader
from witness.judging.observation import Observation

# Each event may hold a megabyte: a few at a time keep the memory small, whatever backlog there is.
_AT_ONCE = 16


# Tools of the client that change nothing and whose names stand for nothing else. What is not among them, every tool of
# an MCP server included, is never passed over unseen.
_READING_TOOLS = (
    "AskUserQuestion", "BashOutput", "CronList", "EnterPlanMode", "ExitPlanMode", "GetGoal", "GetTask", "Glob", "Grep",
    "LS", "ListAgents", "ListConnectors", "ListMcpResourcesTool", "ListPlugins", "ListSkills", "Monitor",
    "NotebookRead", "Poll", "Read", "ReadMcpResourceDirTool", "ReadMcpResourceTool", "ReadNotifications", "Skill",
    "TaskCreate", "TaskGet", "TaskList", "TaskOutput", "TaskUpdate", "TodoWrite", "ToolSearch", "WaitForMcpServers",
    "WebFetch", "WebSearch",
)  # fmt: skip


def passed_over(kind: SidecarType) -> list[str]:
    """The client's tools that a sidecar never looks at: after one of these nobody needs to wait for its verdict."""
    wanted = tool_filter(kind.tools)
    return [tool for tool in _READING_TOOLS if not wanted(tool)]


class ActionFilter:
    """Events → the completed actions that a sidecar looks at, and what else of them it goes by.

    Args:
        kind: says which tools are looked at.
        workdir: where the agent works.
        judged: ids of events that were judged already.
    """

    def __init__(self, kind: SidecarType, workdir: str, judged: Iterable[str] = ()) -> None:
        self._reader = EventReader(workdir)
        #: Whether calls of a tool are looked at.
        self.wanted = tool_filter(kind.tools)
        self._judged = frozenset(judged)
        #: The last prompt that was typed to the agent, empty when none came by.
        self.prompt = ""
        #: How many events have come, of any kind.
        self.count = 0
        #: How many completed actions of the last events are not looked at.
        self.passed = 0
        #: Whether the agent's turn ended with the last event.
        self.turn_ended = False
        #: Whether what is said at that end still reaches the agent within the turn.
        self.may_go_on = False

    def sift(self, events: Iterable[SpooledEvent]) -> list[Observation]:
        """The actions that are looked at, oldest first."""
        self.passed, self.turn_ended = 0, False
        found = []
        for event in events:
            self.count += 1
            observation = None if event.id in self._judged else self._reader.see(event)
            if observation is None:
                self.turn_ended, self.may_go_on = ends_turn(event.payload), may_go_on(event.payload)
                continue
            self.turn_ended = False
            if observation.prompt:
                self.prompt = observation.prompt
            elif self.wanted(observation.tool):
                found.append(observation)
            else:
                self.passed += 1
        return found


class EventWatch(ActionFilter):
    """Reads the completed actions that the hooks recorded.

    Args:
        kind, judged: as for ``ActionFilter``.
        assignment: where the spool is.
        position: where the last reader stopped, empty for the beginning.
    """

    def __init__(self, kind: SidecarType, assignment: Assignment, position: str, judged: Iterable[str] = ()) -> None:
        super().__init__(kind, assignment.workdir, judged)
        self._spool = SpoolReader(assignment.spool, position)

    @property
    def position(self) -> str:
        """Where the next look goes on."""
        return self._spool.position

    def look(self) -> list[Observation] | None:
        """The next actions that are looked at, oldest first; None when the spool is read to its end."""
        events = self._spool.read(_AT_ONCE)
        found = self.sift(events)
        return found if events else None
