"""Rows and vectors made anew from the log together, compared with those in use, and put in their place."""
