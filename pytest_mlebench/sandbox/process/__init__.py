"""The process sandbox: an agent runs on this host as a tree of processes in a workspace.

Nothing is imported here: the supervisor is an interpreter of its own that needs little.
"""
