"""Web pages: the report with its map, maps as files, and the explorer with its HTTP server."""

FORMATS = (".html", ".png", ".parquet")  # file formats of a map
