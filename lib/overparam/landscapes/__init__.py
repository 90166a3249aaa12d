"""The objective around the points that a training passes: Figures 1 to 7 of Allen-Zhu et al. 2019."""
