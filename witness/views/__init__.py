"""Views of the one state for people: a terminal's. They know nothing but what ``witness.state`` tells."""
