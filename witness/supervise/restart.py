"""When a sidecar is started again, after Erlang's supervisors: backoff, and an intensity after which it is left alone.

Reference: the OTP design principles, "Supervisor Behaviour", maximum restart intensity.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from witness.config.settings import Settings

# Half of the wait is fixed, half is spread, so that a hundred sidecars which fell together do not rise together.
_JITTER = 0.5


@dataclass(frozen=True, slots=True)
class RestartDecision:
    """What follows a crash.

    Args:
        crashes: the crashes that still count, this one included.
        retry_at: monotonic seconds at which to try again.
        spent: the intensity is exceeded: the sidecar is FAILED until ``retry_at``.
    """

    crashes: tuple[float, ...]
    retry_at: float
    spent: bool


def after_crash(crashes: tuple[float, ...], now: float, settings: Settings, salt: str = "") -> RestartDecision:
    """Decide when a crashed sidecar is tried again.

    The first respawn is immediate; each further one within the window waits twice as long, up to the ceiling. Crashes
    older than the window are forgotten, so a long healthy time clears them, and a sidecar that dies a second after each
    start is still counted.

    Args:
        crashes: earlier crashes, monotonic seconds.
        now: monotonic seconds.
        settings: backoff and intensity.
        salt: spreads the wait; the same salt gives the same wait.
    """
    counted = (*(at for at in crashes if now - at < settings.intensity_window), now)
    if len(counted) > settings.intensity:
        return RestartDecision(counted, now + settings.failed_decay, spent=True)
    if len(counted) == 1:
        return RestartDecision(counted, now, spent=False)
    wait = min(settings.backoff_base * 2 ** (len(counted) - 2), settings.backoff_ceiling)
    spread = int.from_bytes(hashlib.sha256(f"{salt}/{len(counted)}".encode()).digest()[:4]) / 2**32
    return RestartDecision(counted, now + wait * (1 - _JITTER * spread), spent=False)
