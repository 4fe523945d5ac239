"""What the real clients give to their hooks: recorded by ``record.py``, read by the product in ``test_recorded.py``."""
