"""What a project's written conventions and its linters' configuration ask for, as rules that cite their line."""
