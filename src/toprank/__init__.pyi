from ._version import __version__ as __version__
from .data.dataset import QueryDataset as QueryDataset
from .data.mapped import open_queries as open_queries
from .data.mapped import save_queries as save_queries
from .errors import InputError as InputError
