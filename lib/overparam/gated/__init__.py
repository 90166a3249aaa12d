"""Gated nets beside their ReLU twins: what Noy et al. 2021 state and measure about `nets.gated`."""
