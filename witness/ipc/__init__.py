"""Talking to the processes of a town: requests over its sockets, who serves them."""
