"""Reading and writing of streams, applied positions, schedules and triggers."""
