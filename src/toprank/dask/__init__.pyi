from ..errors import WorkersLost as WorkersLost
from .placing import place as place
from .reading import read_letor as read_letor
from .reading import read_table as read_table
