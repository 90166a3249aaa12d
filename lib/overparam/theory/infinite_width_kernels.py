"""Gram matrices and neural tangent kernels of infinitely wide nets, in closed form and float64.

Those of finite width are in `finite_width_kernels`.
"""

import math

import numpy as np
import torch
from tqdm import tqdm

from .. import arguments, memory
from ..errors import ParameterError

LARGE = 5000  # rows from which progress is shown
BLOCK = 256  # rows at a time: the working set stays in the cache, and only the result is n x n
WORK = 10  # arrays of the size of a block
NOT_DEFINITE = "the matrix is not positive definite: are two inputs parallel?"


def relu_gram(x):
    """H_ij = <x_i, x_j> (pi - arccos <x_i, x_j>) / (2 pi), H^infinity of a two-layer ReLU net.

    x: unit-norm inputs (n, d). Returns float64 (n, n), symmetric, with diagonal exactly 1/2. The
    inner products are clipped to [-1, 1]. Source: Arora et al. 2019, eq. (3).

    >>> relu_gram(torch.eye(2))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.5000]], dtype=torch.float64)
    """
    return _assembled(_unit(x), lambda a, b: _relu_kernel(a @ b.T), 0.5)


def relu_cross_gram(x_new, x):
    """H(x'_i, x_j), the kernel of `relu_gram` between new inputs and the training inputs.

    x_new: unit-norm inputs (n', d); x: unit-norm inputs (n, d). Returns float64 (n', n). Where two
    inputs coincide, arccos loses 1e-8 of the 1/2. Source: Arora et al. 2019, eq. (3).
    """
    x_new, x = _unit(x_new), _unit(x)
    cross = _room(x_new, len(x))
    for rows in _blocks(len(x_new)):
        cross[rows] = _relu_kernel(x_new[rows] @ x.T)
    return cross


def kernel_predict(gram, cross, y):
    """H(x', X) H^{-1} y: what a net of infinite width predicts at new inputs x'.

    Trained to the end, from outputs zero.
    gram: (n, n) on the training inputs; cross: (n', n) as of `relu_cross_gram`; y: labels (n,), or
    (n, k) for k label vectors that share one Cholesky factor. Returns float64 (n',) or (n', k).
    Raises ParameterError where the gram is not positive definite. Source: the limit k -> infinity
    of Arora et al. 2019, eqs. (7), (11).
    """
    named = {"gram": gram, "cross": cross, "y": y}
    gram, cross, y = (arguments.finite(_float64(t), name) for name, t in named.items())
    factor, failed = torch.linalg.cholesky_ex(gram)
    if failed or _singular(factor):
        raise ParameterError(NOT_DEFINITE)
    columns = y if y.ndim == 2 else y.unsqueeze(1)
    prediction = cross @ torch.cholesky_solve(columns, factor)
    return prediction if y.ndim == 2 else prediction.squeeze(1)


def _singular(factor):
    """Whether the smallest pivot of a Cholesky factor is no larger than rounding can make it.

    In which order the inputs stand must not decide whether two parallel ones are found.
    """
    pivots = factor.diagonal().square()
    rounding = len(factor) * torch.finfo(factor.dtype).eps
    return bool(pivots.min() <= rounding * pivots.max())


def _unit(x):
    x = arguments.rows(x, "x")
    if not x.is_meta and not torch.allclose(x.norm(dim=1), x.new_ones(()), atol=1e-6):
        raise ParameterError("relu_gram needs unit-norm inputs: eq. (3) holds on the sphere")
    return x


def _relu_kernel(inner):
    k = inner.clamp_(-1, 1)
    return (0.5 - torch.acos(k) / (2 * math.pi)).mul_(k)


def leaky_ntk(x, depth, alpha):
    """T_L of the deep leaky-ReLU net of Algorithm 1 with only W_1..W_L trained.

    Its tangent kernel is m / (2 d) T_L for width m.
    With s = |x||x'|, rho_0 the cosine, c = (1 - alpha)^2 / (1 + alpha^2), and k_0, k_1 the
    arc-cosine kernels k_0 = 1 - arccos(rho)/pi, k_1 = (sqrt(1 - rho^2) + (pi - arccos rho) rho) /
    pi:
    a_i = (c k_i + (2 alpha / (1 + alpha^2)) {1, rho}), rho_l = a_1(rho_{l-1}), T_0 = 0,
    T_l = a_0(rho_{l-1}) (T_{l-1} + s rho_{l-1}). So T_L(x, x) = L |x|^2.

    x: inputs (n, p) of any norms, not 0. Returns float64 (n, n). Source: the limit of the Gram
    matrix in Guo et al. 2024, eq. (33); ours.
    """
    if depth < 1 or depth % 1:
        raise ParameterError(f"depth must be a whole number of layers, at least 1, not {depth!r}")
    x = arguments.rows(x, "x")
    c, linear = (1 - alpha) ** 2 / (1 + alpha**2), 2 * alpha / (1 + alpha**2)

    def block(a, b):
        s, rho = _sizes_and_cosines(a, b)
        total = torch.zeros_like(rho)
        for _ in range(depth):
            k0, k1 = _arc_cosine_kernels(rho)
            total = (total + s * rho) * (c * k0 + linear)
            rho = torch.clamp(c * k1 + linear * rho, -1, 1)
        return total

    return _assembled(x, block, depth * x.norm(dim=1) ** 2)


def residual_ntk(x, depth, theta):
    """The tangent kernel over m of `ResidualReLU(d, m, L, theta)`, for m -> infinity.

    All W_1..W_{L+1} are trained.
    With K_l, N_l the limits of <x_l, x'_l> and |x_l|^2, rho_l their cosine, S_l that of m^{-1/2}
    sum_j x_{l,j}, and k_0, k_1 as in `leaky_ntk`: K_1 = |x||x'| k_1(rho_0), S_1 = |x| / sqrt(pi),
    K_{l+1} = K_l + theta^2 sqrt(N_l N'_l) k_1(rho_l) + theta (S'_l sqrt(N_l) + S_l sqrt(N'_l)) /
    sqrt(pi), S_{l+1} = S_l + theta sqrt(N_l / pi); backwards B_L = k_0(rho_L), B_l = B_{l+1} (1 +
    theta^2 k_0(rho_l)). The kernel is half of K_L B_L + theta^2 sum_{l=2..L} K_{l-1} B_l
    k_0(rho_{l-1}) + <x, x'> B_1 k_0(rho_0).

    x: inputs (n, d) of any norms, not 0; depth: L; theta: as of `ResidualReLU`, None for the plain
    net. Returns float64 (n, n). Source: Frei et al. 2019, Section 2, for the net; the limit is
    ours.
    """
    if depth < 1 or depth % 1:
        raise ParameterError(f"depth must be a whole number of layers, at least 1, not {depth!r}")
    x = arguments.rows(x, "x")
    return _assembled(x, lambda a, b: _residual_block(a, b, depth, theta))


def _residual_block(a, b, depth, theta):
    """The kernel between some inputs a and the inputs b, of which a are the last."""
    N, N2 = a.square().sum(1), b.square().sum(1)
    S, S2 = (N / math.pi).sqrt(), (N2 / math.pi).sqrt()
    K = [a @ b.T]
    k0, k1 = _arc_cosine_kernels(_cosine(K[0], N, N2))
    overlaps = [k0]  # k_0(rho_0), ..
    for l in range(depth):
        root, root2 = N.sqrt()[:, None], N2.sqrt()[None]
        update = root * root2 * k1
        if theta is None or l == 0:
            K.append(update)
        else:
            mixed = theta * (S2[None] * root + S[:, None] * root2) / math.pi**0.5
            K.append(K[-1] + theta**2 * update + mixed)
            (N, S), (N2, S2) = _residual_norm(N, S, theta), _residual_norm(N2, S2, theta)
        k0, k1 = _arc_cosine_kernels(_cosine(K[-1], N, N2))
        overlaps.append(k0)
    B = overlaps[-1]
    total = K[-1] * B
    for l in range(depth - 1, -1, -1):
        k0 = overlaps[l]
        total = total + (1 if theta is None or l == 0 else theta**2) * K[l] * B * k0
        B = B * (k0 if theta is None else 1 + theta**2 * k0)
    return total / 2


def _residual_norm(N, S, theta):
    """N_{l+1} and S_{l+1}."""
    step = theta * (N / math.pi).sqrt()
    return N * (1 + theta**2) + 2 * S * step, S + step


def gated_ntk(x, depth, kind="grelu"):
    """The tangent kernel of `GatedRuns(kind, d_x, m, L, d_y)` times d_x d_y / m^2.

    By one output, for m -> infinity.
    With r_1 = k_1(delta), r_{k+1} = k_1(r_k), delta the cosine of two inputs and k_0, k_1 as in
    `leaky_ntk`: of GReLU L |x||x'| r_1 prod_{k=1..L} k_0(r_k), since every layer gives the same; of
    its ReLU twin
    |x||x'| sum_k r_k prod_{j>=k} k_0(r_j).

    x: inputs (n, d_x) of any norms, not 0; depth: L. Returns float64 (n, n), with diagonal L |x|^2.
    Source: Noy et al. 2021, Section 2.1, eqs. (9), (10), for the nets; the limit is ours.
    """
    if depth < 1 or depth % 1:
        raise ParameterError(f"depth must be a whole number of layers, at least 1, not {depth!r}")
    x = arguments.rows(x, "x")

    def block(a, b):
        s, rho = _sizes_and_cosines(a, b)
        r, overlaps = [], []
        _, k1 = _arc_cosine_kernels(rho)
        for _ in range(depth):
            r.append(torch.clamp(k1, -1, 1))
            k0, k1 = _arc_cosine_kernels(r[-1])
            overlaps.append(k0)
        if kind == "grelu":
            return s * depth * r[0] * torch.stack(overlaps).prod(0)
        total, product = 0, 1
        for each, overlap in zip(reversed(r), reversed(overlaps), strict=True):
            product = product * overlap
            total = total + each * product
        return s * total

    return _assembled(x, block, depth * x.norm(dim=1) ** 2)


def _arc_cosine_kernels(rho):
    """k_0 and k_1 of `leaky_ntk`, of cosines."""
    angle = torch.acos(rho)
    k1 = (torch.sqrt(1 - rho**2) + (math.pi - angle) * rho) / math.pi
    return 1 - angle / math.pi, k1


def _cosine(inner, square, square2):
    """Of some inputs with all up to the last of them; exactly 1 on the diagonal.

    There arccos loses half the digits.
    """
    cosine = torch.clamp(inner / (square[:, None] * square2[None]).sqrt(), -1, 1)
    cosine[:, -len(cosine) :].fill_diagonal_(1)
    return cosine


def _sizes_and_cosines(a, b):
    """|a_i| |b_j| and the cosines of their angles."""
    s = a.norm(dim=1)[:, None] * b.norm(dim=1)[None]
    return s, torch.clamp(a @ b.T / s, -1, 1)


def _assembled(x, block, diagonal=None):
    """The symmetric matrix of block(a, b), a: some inputs, b: all up to the last of them.

    Rows at a time.
    diagonal: its exact values, which arccos loses near 1; None: as they are.
    """
    gram = _room(x, len(x))
    for rows in _blocks(len(x)):
        gram[rows, : rows.stop] = block(x[rows], x[: rows.stop])
    for rows in _blocks(len(x)):
        gram[: rows.start, rows] = gram[rows, : rows.start].T
        square = gram[rows, rows]
        square.copy_(square.tril() + square.tril(-1).T)
    if diagonal is not None:
        gram.diagonal().copy_(torch.as_tensor(diagonal, dtype=gram.dtype, device=gram.device))
    return gram


def _room(x, columns):
    """An empty matrix with a row for each of x. Raises MemoryExceeded where it does not fit."""
    rows = len(x) + WORK * min(BLOCK, len(x))
    memory.require(8 * columns * rows, f"a {len(x)} x {columns} kernel matrix", x.device)
    return x.new_empty(len(x), columns)


def _float64(x):
    return torch.as_tensor(x).to(torch.float64)


def _blocks(n):
    """Slices of at most BLOCK rows; a large matrix shows a bar on a terminal."""
    blocks = [slice(start, min(start + BLOCK, n)) for start in range(0, n, BLOCK)]
    return tqdm(
        blocks, "rows of the Gram matrix", leave=False, disable=None if n >= LARGE else True
    )


def extreme_eigenvalues(gram):
    """(smallest, largest) eigenvalue of a positive definite float64 matrix, by Lanczos.

    The smallest from the inverse, from below.
    For matrices too large for a full decomposition; one Cholesky factor, no copy of the spectrum.
    Raises ParameterError where the matrix is not positive definite.
    """
    from scipy.linalg import LinAlgError, cho_factor, cho_solve
    from scipy.sparse.linalg import LinearOperator, eigsh

    gram = arguments.finite(gram, "gram").numpy()
    start = np.random.default_rng(0).standard_normal(len(gram))
    largest = eigsh(gram, k=1, which="LA", v0=start, return_eigenvectors=False)[0]
    try:
        factor = cho_factor(gram, lower=True)
    except LinAlgError as error:
        raise ParameterError(NOT_DEFINITE) from error
    if _singular(torch.from_numpy(factor[0])):
        raise ParameterError(NOT_DEFINITE)
    inverse = LinearOperator(gram.shape, matvec=lambda b: cho_solve(factor, b), dtype=gram.dtype)
    smallest = 1 / eigsh(inverse, k=1, which="LA", v0=start, return_eigenvectors=False)[0]
    return float(smallest), float(largest)
