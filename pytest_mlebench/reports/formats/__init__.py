"""The formats of a report, a module each."""
