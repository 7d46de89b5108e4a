"""The built-in implementations: one module for each engine."""
