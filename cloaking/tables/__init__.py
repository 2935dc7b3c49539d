"""Read and write tables by their references, in catalogs, files and databases."""
