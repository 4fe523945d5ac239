from __future__ import annotations

import pytest

from witness.gastown.bead_lookup import Attachment, read_attachment


@pytest.mark.parametrize(
    ("description", "expected"),
    [
        ("", Attachment()),
        ("Fix it.\nNote: attached to nothing", Attachment(prose="Fix it.\nNote: attached to nothing")),
        ("attached_formula: mol-polecat-work", Attachment("mol-polecat-work")),
        ("  Attached-Formula:  mol-x  \nprose: more", Attachment("mol-x", prose="prose: more")),
        ("AttachedFormula: mol-x", Attachment("mol-x")),
        ("attached_formula:\n", Attachment(prose="attached_formula:")),
        ('attached_vars: ["a=1", "sidecars=specs:a.md,tools", "bad", 3]',
         Attachment("", {"a": "1", "sidecars": "specs:a.md,tools"})),
        ("attached_vars: a=1, b=2", Attachment("", {"a": "1", "b": "2"})),
        ("formula_vars: a=1\nb=two words\nc=\n\nd=4", Attachment("", {"a": "1", "b": "two words", "c": ""}, "d=4")),
        ('formula_vars: a=1\nattached_vars: ["a=2"]', Attachment("", {"a": "2"})),
        ("---\nnot: [x]\n---\nGo.\nmode: ralph\ndispatched_by: mayor",
         Attachment(prose="---\nnot: [x]\n---\nGo.")),
        ("attached_formula: one\r\nattached_vars: [\"a=b=c\"]\r\n", Attachment("one", {"a": "b=c"})),
    ],
)  # fmt: skip
def test_the_fields_of_a_hooked_bead(description: str, expected: Attachment) -> None:
    assert read_attachment(description) == expected
