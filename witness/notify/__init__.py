"""A person is told when a polecat needs somebody: ``on:`` of the settings.

Theory of operation. Telling may take seconds (a webhook that hangs, a program that does not end), so it is done by a
process of its own, which the Witness starts where the settings ask for it, starts again when it has ended, and which
ends with the Witness. That process follows the town's state as ``gt state --follow`` does.

``NoticeBoard`` is what decides: states in, notices out. A polecat gives one notice when it comes into a condition (it
waits, is stuck, has died …) and none while it stays in it; a question of another wording is another condition. What
falls into quiet hours, or too soon after the last of its kind, is kept and told when it may be, if it still holds
then; a death always holds. What was told is written down, so that a Witness that is started anew does not say all of it
again.

``tell`` does the telling: a program that gets one JSON object on its standard input, a webhook that gets the same
object, the desktop, a terminal's bell. What fails is tried three times more, and then is a line of the town's history.
"""
