"""Tables that do not fit in memory, as a graph in parts on disk.

Nodes are read one column at a time, with the code that reads them in memory. Edges are processed by DuckDB, which
writes to disk what does not fit in a given amount of memory.
"""
