"""The nudge queue, the words of a nudge, typing into an idle prompt, receipts."""
