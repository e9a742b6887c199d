"""The admin page: what runs, whose memory there is, and how it is kept; rendered here, for a browser."""
