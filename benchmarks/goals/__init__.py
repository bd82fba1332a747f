"""What benchmarks measured, beside the goals that it is held against: figure.py has one value, table.py shows many."""
