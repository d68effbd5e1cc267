"""One file a benchmark; each has `run(options) -> list of report.Section`."""
