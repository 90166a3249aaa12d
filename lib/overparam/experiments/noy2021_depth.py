"""Random nets layer by layer; their matrices are drawn and discarded, so that deep and wide ones
fit.
"""


def layers(net, x, run=0):
    """Yields (h_k, D_k), k = 0..L, of a `GatedRuns` at its start: activations (n, m) and open gates
    as booleans (n, m).

    x: inputs (n, d_x). At most two m x m matrices are alive at once.
    """
    _, C = net.outer(run, x)
    h = z = (x @ C.T).clamp_(min=0)
    yield h, h > 0
    for k in range(1, net.L + 1):
        h = h @ net.layer(run, k, x).T
        if net.kind == "grelu":
            z = net.psi_times(run, k, z).clamp_(min=0)
            gate = z > 0
            h = h.mul_(gate)
        else:
            h = h.clamp_(min=0)
            gate = h > 0
        yield h, gate
