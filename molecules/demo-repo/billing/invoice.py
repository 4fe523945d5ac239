"""Invoices as text."""

from billing.prices import price_cents


def invoice_lines(order: dict) -> list[str]:
    """One line for each line of the order."""
    return [
        f"{line['quantity']} x {line['sku']}  {price_cents(line['sku']) * line['quantity'] / 100:.2f}"
        for line in order["lines"]
    ]
