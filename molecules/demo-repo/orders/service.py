"""Orders: placed, numbered, kept in memory."""

import itertools

from billing.prices import price_cents
from orders.checks import check_between, check_customer
from orders.errors import UnknownOrderError

_numbers = itertools.count(1001)
_orders: dict[str, dict] = {}


def place_order(body: dict) -> dict:
    """Check and store an order, and return its id and total."""
    customer = check_customer(body.get("customer"))
    lines = body.get("lines", [])
    check_between(len(lines), 1, 50, "lines_count", "lines")
    order_id = f"o-{next(_numbers)}"
    total = sum(price_cents(line["sku"]) * line["quantity"] for line in lines)
    _orders[order_id] = {"customer": customer, "lines": lines, "total_cents": total}
    return {"id": order_id, "total_cents": total}


def find_order(order_id: str) -> dict:
    """Return a stored order, or raise ``UnknownOrderError``."""
    try:
        return _orders[order_id]
    except KeyError:
        raise UnknownOrderError("order_unknown", "id") from None
