"""The Witness as a process: its loop, the requests it answers, its client, service units."""
