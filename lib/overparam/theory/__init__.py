"""What the papers prove with: kernels, curvature, margins, changed weights and attacks,
straight-line fits.
"""
