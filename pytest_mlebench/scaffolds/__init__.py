"""What ``pytest-mlebench init`` and ``new competition`` write: text with names to fill in."""
