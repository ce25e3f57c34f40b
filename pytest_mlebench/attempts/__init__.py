"""Attempts: one competition, one seed, one try; its folder, its record, its life."""
