"""Results that a stranger can check: what to publish, what to verify, what is suspicious."""
