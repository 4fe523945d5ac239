"""Placing orders."""

import unittest

from orders.errors import OrderError
from orders.service import find_order, place_order


class PlaceOrder(unittest.TestCase):
    def test_total_is_in_cents(self):
        order = place_order({"customer": "c-17", "lines": [{"sku": "tea-01", "quantity": 2}]})
        self.assertEqual(order["total_cents"], 1180)
        self.assertEqual(find_order(order["id"])["customer"], "c-17")

    def test_customer_is_refused_when_malformed(self):
        with self.assertRaises(OrderError) as caught:
            place_order({"customer": "x", "lines": [{"sku": "tea-01", "quantity": 1}]})
        self.assertEqual(caught.exception.field, "customer")
