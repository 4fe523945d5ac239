"""The doctor: what was found here, what is wrong, how to mend it."""

from witness.doctor.checks import Examination, examine
from witness.doctor.finding import Finding, Level

__all__ = ["Examination", "Finding", "Level", "examine"]
