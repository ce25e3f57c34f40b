"""Preparation that several competitions share."""
