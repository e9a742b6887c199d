"""Commands `mnemon bench` and `mnemon calibrate`."""
