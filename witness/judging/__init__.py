"""What judges that are no part of ours are given and answer: an action as it was seen, functions, who calls them."""
