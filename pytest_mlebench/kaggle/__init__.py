"""Kaggle: its client, credentials, downloads, descriptions and leaderboards."""
