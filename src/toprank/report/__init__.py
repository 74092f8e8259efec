"""The report page: what a contest found, as one file to look at, keep and send."""
