"""Tables that do not fit in memory, as a graph in parts on disk.

Nodes are read one column at a time, with the code that reads them in memory. Edges are left to DuckDB, which keeps on
disk what does not fit in a stated amount of memory.
"""
