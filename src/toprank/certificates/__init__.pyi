from .advice import advise as advise
from .base import Assumption as Assumption
from .base import Certificate as Certificate
from .classification import certify_perceptron as certify_perceptron
from .margins import largest_margin as largest_margin
from .margins import realised_margins as realised_margins
from .performance import PerformanceCertificate as PerformanceCertificate
from .performance import confidence_sequence as confidence_sequence
