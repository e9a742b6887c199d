"""Rules on the values of an attribute, such as an age, an employer or the date of a meeting."""
