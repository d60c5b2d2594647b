"""Pages: the report with its map, the map as a file, and the explorer with its server."""

FORMATS = (".html", ".png", ".parquet")  # of a map
