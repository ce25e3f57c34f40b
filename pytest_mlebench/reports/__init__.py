"""Reports: results with the conditions they came about under; written, read, aggregated."""
