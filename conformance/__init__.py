"""What is checked: drives an implementation, judges its results and reports on them."""
