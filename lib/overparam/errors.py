"""What can go wrong in a user's hands. Each message says in one or two lines what is wrong and what
to do.
"""


class OverparamError(Exception):
    """Base of all errors whose message tells the user what is wrong and what to do."""


class ParameterError(OverparamError, ValueError):
    """A parameter is unknown, of the wrong type or out of range."""


class DataUnavailable(OverparamError):
    """A data set can be had neither from the cache, nor from the mirror, nor from its original
    host.
    """


class DataCorrupt(OverparamError):
    """A file's bytes are not those that the registry names."""


class MemoryExceeded(OverparamError):
    """More memory is needed than may be used; known before it is taken."""


class TrainingDiverged(OverparamError):
    """The loss became infinite or NaN."""
