"""Checks that several parts of the service share."""

import re

from orders.errors import OrderError

_CUSTOMER = re.compile(r"c-[0-9]+")


def check_customer(customer: object) -> str:
    """Return the customer's id, or raise ``OrderError``."""
    if not isinstance(customer, str) or not _CUSTOMER.fullmatch(customer):
        raise OrderError("customer_invalid", "customer")
    return customer


def check_between(value: object, low: int, high: int, code: str, field: str) -> int:
    """Return ``value`` when it is a whole number from ``low`` to ``high``, or raise ``OrderError``."""
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise OrderError(code, field)
    return value
