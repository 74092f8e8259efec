"""Models for search engines: `write` one, `verify` it against the engine's arithmetic, `fold` a pipeline into one.

>>> from toprank import export
>>> export.TARGETS
('elasticsearch', 'opensearch', 'solr', 'vespa', 'onnx', 'ranklib', 'sql', 'lucene-expression', 'json')
"""

from .folding import fold
from .schemas import schema
from .verification import Verification, verify
from .writing import TARGETS, Export, check_preparation, read, shift_for, write

__all__ = [
    "TARGETS",
    "Export",
    "Verification",
    "check_preparation",
    "fold",
    "read",
    "schema",
    "shift_for",
    "verify",
    "write",
]
