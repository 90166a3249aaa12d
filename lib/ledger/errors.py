"""What can go wrong with claims and runs.

The command line prints these in one or two lines, without a traceback.
"""

from overparam.errors import OverparamError


class ClaimError(OverparamError):
    """A claim is unknown, or what is registered or measured of it is wrong.

    The message names the place.
    """


class RunFailed(OverparamError):
    """A notebook raised, or its kernel died; the message names the log that holds the traceback."""
