"""Committed offsets: what is kept, and the three requests that write, read and delete them.

The store changes by replay alone; the handlers only describe what is to be written.
"""
