"""Tables fetch and store: references to DataFrames and back, in catalogs, files and databases."""
