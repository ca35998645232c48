"""A project: a `fairpass.toml` that says what is wanted, and a directory in which all of it is made.

`config` reads the file, `template` writes one to start from, `pipeline` does what it says.
"""
