"""Queries of the audit and of tenant moves, which compare rows with the log or with another deployment."""
