"""The checks, a module for each group of clauses."""
