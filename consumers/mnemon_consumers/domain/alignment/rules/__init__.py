"""Rules on two facts: a module for each question that decides their relation."""
