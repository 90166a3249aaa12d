"""What can go wrong in a user's hands: messages say in a line or two what is wrong, what to do."""


class OverparamError(Exception):
    """Base of all errors whose message tells the user what is wrong and what to do."""


class ParameterError(OverparamError, ValueError):
    """A parameter is unknown, of the wrong type or out of range."""


class DataUnavailable(OverparamError):
    """A data set is neither in the cache, nor in the mirror, nor to be had from its host."""


class DataCorrupt(OverparamError):
    """A file's bytes are not those that the registry names."""


class MemoryExceeded(OverparamError):
    """More memory is needed than may be used; known before it is taken."""


class TrainingDiverged(OverparamError):
    """The loss became infinite or NaN."""
