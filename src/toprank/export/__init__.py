"""Models for search engines: `write` one, `verify` it against the engine's arithmetic, `fold` a pipeline into one.

>>> from toprank import export
>>> export.TARGETS
('elasticsearch', 'opensearch', 'solr', 'vespa', 'onnx', 'ranklib', 'sql', 'lucene-expression', 'json')
"""

from .folding import fold as fold
from .schemas import schema as schema
from .scorers import Linear as Linear
from .scorers import Prepared as Prepared
from .scorers import Scorer as Scorer
from .scorers import Stumps as Stumps
from .scorers import Trees as Trees
from .verification import Verification as Verification
from .verification import verify as verify
from .writing import TARGETS as TARGETS
from .writing import Export as Export
from .writing import check_preparation as check_preparation
from .writing import read as read
from .writing import shift_for as shift_for
from .writing import write as write

__all__ = [
    "TARGETS",
    "Export",
    "Linear",
    "Prepared",
    "Scorer",
    "Stumps",
    "Trees",
    "Verification",
    "check_preparation",
    "fold",
    "read",
    "schema",
    "shift_for",
    "verify",
    "write",
]
