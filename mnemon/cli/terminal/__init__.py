"""What every command shares: output, exit codes, signals."""
