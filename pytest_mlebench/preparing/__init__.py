"""From raw files to a prepared dataset: archives, downloads, splits and the store."""
