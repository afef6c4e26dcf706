"""The checks: one module for each section, one function for each clause. What is not met is a Violation."""
