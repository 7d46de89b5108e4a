"""The suite, tested."""
