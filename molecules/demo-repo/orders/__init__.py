"""Taking orders."""
