"""A server that ranks, learns from feedback, and loses nothing: `toprank serve`.

A body is decoded (`bodies`), an event is learned (`learning`) and written with the new state in one transaction
(`store`, `service`), and only then answered (`endpoints` in `app`, behind `guard`).
"""
