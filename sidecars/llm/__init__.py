"""The model's client."""
