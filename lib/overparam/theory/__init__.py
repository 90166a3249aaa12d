"""What the papers prove with: kernels, curvature, margins, changed weights, fits."""
