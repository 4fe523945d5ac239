"""Prices and invoices."""
