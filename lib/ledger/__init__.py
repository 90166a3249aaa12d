"""What the notebooks claim, and what was measured.

Registered claims, records, runs, the command line, the site.

A page needs one name of it: `from ledger.claim import Claim`. Of the mathematics in `overparam`
this package uses the data sets, the memory that may be used, and `overparam.settings`.
"""
