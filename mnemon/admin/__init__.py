"""The admin page, rendered on the server as HTML.

It shows status, users and their memory, settings, usage, dead letters and rebuilds.
"""
