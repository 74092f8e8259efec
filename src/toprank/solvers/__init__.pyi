from .bundle import Bundle as Bundle
from .lbfgs import LBFGS as LBFGS
from .minibatch import MiniBatch as MiniBatch
from .newton import Newton as Newton
