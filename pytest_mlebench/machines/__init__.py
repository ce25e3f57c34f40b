"""Several machines: which they are, how they are reached, and what travels to them and back."""
