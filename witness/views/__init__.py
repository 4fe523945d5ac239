"""Views of the one state for people: a terminal's and a browser's. They know only what ``witness.state`` tells."""
