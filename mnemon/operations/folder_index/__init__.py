"""Synchronisation of documents with the files of a folder."""
