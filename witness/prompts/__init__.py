"""The blocks of an agent's prompt and their lint."""
