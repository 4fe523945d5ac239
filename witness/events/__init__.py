"""The spool of completed actions: written by the hooks, read by the sidecars."""
