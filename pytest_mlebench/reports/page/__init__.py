"""The report as a page: one file, no network, usable without scripts and better with them."""
