"""What the tests of the pages share."""

from __future__ import annotations

import pandas  # noqa: F401  # loaded once here: a session in this process forgets its imports,
import scipy.stats  # noqa: F401  # and numpy refuses to be loaded again
import sklearn.metrics  # noqa: F401
