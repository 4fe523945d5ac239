"""What can be wrong with an order."""


class OrderError(Exception):
    """The order is refused; ``status``, ``code`` and ``field`` go into the answer."""

    status = 422

    def __init__(self, code: str, field: str) -> None:
        self.code, self.field = code, field
        super().__init__(f"{code} at {field}")


class UnknownOrderError(OrderError):
    """There is no order of that id."""

    status = 404
