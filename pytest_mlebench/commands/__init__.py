"""The commands of ``pytest-mlebench``, a module each."""
