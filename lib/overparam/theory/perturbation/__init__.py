"""Deep nets whose weights are changed within a radius, at random or by attacks.

The neighbourhoods are those of Allen-Zhu et al. 2019, Section 8; Frei et al. 2019, Section 4; Guo
et al. 2024, App. B.
"""
