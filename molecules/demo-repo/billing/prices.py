"""What things cost."""

_CENTS = {"tea-01": 590, "tea-02": 720, "mug-01": 1250}


def price_cents(sku: str) -> int:
    """The price of one piece, in cents."""
    return _CENTS[sku]
