"""The dataset store: every competition prepared once, whole or not at all."""
