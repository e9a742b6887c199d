"""Import of memory from files and from tables of other programs."""
