"""What is known of each agent client: its screen, its hooks, its settings files."""
