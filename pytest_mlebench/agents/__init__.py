"""Agents: how a name becomes something that runs, and the two that come with the plugin."""
