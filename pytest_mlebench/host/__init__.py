"""What this host is made of and who uses it: leases, GPUs, processes."""
