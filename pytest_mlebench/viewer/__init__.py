"""The viewer: a window onto runs in a browser, on this machine, read-only."""
