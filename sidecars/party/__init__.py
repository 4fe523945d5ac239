"""Several agents in one conversation, with decisions on record."""
