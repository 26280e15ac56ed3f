"""What is measured, one module each: `run(bench)` gives its figures."""
