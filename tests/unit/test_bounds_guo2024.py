"""The formulas of Guo et al. 2024 against the paper's exponents, quadrature, simulation and each other."""

import inspect
from itertools import pairwise

import numpy as np
import pytest
import sympy
from scipy.integrate import quad

from overparam.bounds import guo2024 as g
from overparam.errors import ParameterError

# "c" stands for c(α) and "lnm" for ln m, both as independent factors; every other name is an argument.
MONOMIALS = {
    "width_gen_gd": dict(n=10.4, L=15.4, d=1.4, delta=-3.6, C=1),
    "width_gen_sgd": dict(n=13.4, L=15.4, d=1.4, b=-1, delta=-4.6, C=1),
    "width_gen_special": dict(n=1.4, L=12.4, d=5.4, C=1),
    "eta_max_gd": dict(n=-1, L=-2, m=-1, d=1, C=1),
    "eta_max_gd_lemma": dict(n=-3, L=-7.5, m=-0.5, lnm=-2, d=0.5, delta=1.5, C=1),
    "eta_max_sgd": dict(n=-3, L=-3, m=-1, lnm=-2, d=1, delta=1, C=1),
    "burnin_sgd": dict(c=-2, n=5, L=2, b=-1, delta=-2, lnm=2, C=1),
    "omega_semismooth": dict(L=-4.5, lnm=-1.5, C=1),
    "omega_gradient": dict(n=-1.5, L=-7.5, lnm=-1.5, delta=1.5, C=1),
    "omega_special": dict(L=-6, lnm=-1.5, d=-1.5, C=1),
    "omega_direct": dict(t=1, eta=1, n=0.5, m=0.5, lnm=0.5, d=-0.5, C=1),
    "omega_universal": dict(n=0.5, d=0.5, delta=-0.5, m=-0.5, L0=0.5, c=-0.5, C=1),
    "grad_upper_layer": dict(loss=1, m=1, n=1, d=-1, C=1),
    "grad_lower": dict(c=1, loss=1, delta=1, m=1, n=-1, d=-1, C=1),
    "grad_lower_layer": dict(c=1, v2=1, delta=1, m=1, n=-1, d=-1, L=-1, C=1),
    "grad_lower_special": dict(c=1, loss=1, m=1, d=-2, C=1),
    "prod_norm_bound": dict(L=0.5, C=1),
    "back_bound": dict(m=0.5, d=-0.5, C=1),
    "flips_bound": dict(omega=2 / 3, m=1, L=1, C=1),
    "flips_adversarial": dict(omega=2 / 3, m=1),
    "dg_bound": dict(c=0.5, omega=1, L=1.5, C=1),
    "hprime_bound": dict(omega=1, L=2.5, lnm=0.5, C=1),
    "back_perturb_bound": dict(c=0.5, omega=1 / 3, L=2, m=0.5, lnm=0.5, d=-0.5, C=1),
    "linearisation_bound": dict(c=0.5, omega=4 / 3, L=2, m=0.5, lnm=0.5, C=1),
    # 1 - γ
    "gamma_gd": dict(c=1, eta=1, delta=1, m=1, n=-1, d=-1, C=1),
    "gamma_sgd": dict(c=1, eta=1, b=1, delta=1, m=1, n=-2, d=-1, C=1),
    "gamma_gd_zou_gu": dict(c=1, eta=1, delta=1, m=1, n=-1, d=-1, L=-1, C=1),
    "gamma_sgd_zou_gu": dict(c=1, eta=1, b=1, delta=1, m=1, n=-2, d=-1, L=-1, C=1),
    "gamma_special": dict(c=1, eta=1, m=1, d=-2, C=1),
    "gamma_convex": dict(c=1, E=1, delta=1, eta=1, m=1, n=-2, d=-1, L=-1, C=1),
    "cos2_upper": dict(delta=2, L=-2, C=1),
    "C_gamma": dict(gamma0=1, C0=0),
    # -ln of the probability
    "norm_dev_prob": dict(eps=2, m=1, L=-1, C=1),
    # m / ln^4 m of the width
    "width_gd": dict(c=-1, n=5, L=15, d=1, delta=-4, C=1),
    "width_sgd": dict(c=-4, n=8, L=15, d=1, b=-1, delta=-5, C=1),
    "width_special": dict(c=-1, n=1, L=12, d=5, C=1),
    "width_convex": dict(c=-1, n=6, L=16, d=1, delta=-4, C=1),
}
# The value where every argument is 1 but α = 0, so that c = 1, and m = e, so that ln m = 1.
PREFACTORS = {"flips_adversarial": (3 / np.pi) ** (1 / 3)}
ONE_MINUS = [name for name in MONOMIALS if name.startswith("gamma")] + ["cos2_upper"]
BASE = dict(
    alpha=-0.3, n=70.0, L=3.0, d=2.0, b=5.0, delta=0.3, m=50.0, eta=1e-2, tau=0.2, eps=0.1, t=9.0,
    omega=0.02, w=0.01, loss=4.0, v2=4.0, E=0.7, E0=0.7, k=0.05, L0=11.0, l=3.0, gamma=0.9, gamma0=0.9,
    phi=1.1, lam=0.3, r2=2.0, L1=3.0, L2=2.0, t1=10.0, t2=30.0, kappa=0.4,
    C=0.5, C0=0.8, C1=1.3, C2=0.7, C3=1.1, C4=0.6, C5=0.9,
)  # fmt: skip
PUBLIC = [f for f in vars(g) if f[0] != "_" and getattr(vars(g)[f], "__module__", "") == g.__name__]


def parameters(name):
    return [p for p in inspect.signature(getattr(g, name)).parameters if p not in ("form", "terms")]


def base(name, **changes):
    return {p: BASE[p] for p in parameters(name)} | changes


def monomial(name, **arguments):
    """The function, stripped of the shell that keeps it from being a monomial."""
    value = getattr(g, name)(**arguments)
    if name in ONE_MINUS:
        return 1 - value
    if name == "norm_dev_prob":
        return -np.log(value)
    if name == "C_gamma":
        return arguments["C0"] - value
    return value / np.log(value) ** 4 if name.startswith("width") and "gen" not in name else value


def predicted_ratio(name, arguments, changed):
    exponents = dict(MONOMIALS[name])
    if name == "C_gamma":
        exponents["C0"] = 1

    def factors(given):
        return given | {"c": g.c_alpha(given.get("alpha", 0)), "lnm": np.log(given.get("m", np.e))}

    before, after = factors(arguments), factors(changed)
    return np.prod([(after[x] / before[x]) ** power for x, power in exponents.items()])


PAIRS = [(f, p) for f in MONOMIALS for p in parameters(f) if p != "tau"]


@pytest.mark.parametrize(("name", "argument"), PAIRS)
def test_exponents_are_those_of_the_paper(name, argument):
    arguments = base(name)
    changed = arguments | {argument: -1.7 if argument == "alpha" else 1.1 * arguments[argument]}
    ratio = monomial(name, **changed) / monomial(name, **arguments)
    assert ratio == pytest.approx(predicted_ratio(name, arguments, changed), rel=1e-9)
    assert abs(np.log(ratio)) > 1e-3, "the argument has no effect"


@pytest.mark.parametrize("name", [f for f in MONOMIALS if not f.startswith("width_") or "gen" in f])
def test_prefactors_are_one(name):
    ones = {p: 0.0 if p == "alpha" else np.e if p == "m" else 1.0 for p in parameters(name)}
    power = MONOMIALS[name].get("m", 0)
    assert monomial(name, **ones) == pytest.approx(PREFACTORS.get(name, 1) * np.e**power, rel=1e-12)


@pytest.mark.parametrize(
    ("constant", "powers"),
    [
        ("C1", dict(c=0.5, d=1, lnm=1, m=0.5, L=2, omega=4 / 3)),
        ("C2", dict(d=1, m=0.5, lnm=0.5, n=-0.5, L=1, omega=1)),
        ("C3", dict(d=1, lnm=0.5, n=-0.5)),
        ("loss", dict(loss=1, n=-1)),
    ],
)
def test_terms_of_lemma_43(constant, powers):
    alone = dict(loss=1e-99, C1=1e-99, C2=1e-99, C3=1e-99) | {constant: 2.0}
    arguments = base("gen_lemma43", **alone) | {"c": g.c_alpha(-0.3), "lnm": np.log(50)}
    expected = np.prod([arguments[x] ** power for x, power in powers.items() if x != constant])
    assert g.gen_lemma43(**base("gen_lemma43", **alone)) == pytest.approx(2 * expected, rel=1e-12)


@pytest.mark.parametrize("name", PUBLIC)
def test_constants_default_to_one(name):
    given = inspect.signature(getattr(g, name)).parameters.values()
    constants = [p for p in given if p.name in ("C", "C0", "C1", "C2", "C3", "C4", "C5")]
    assert all(p.default == 1 and (p.kind is p.KEYWORD_ONLY or name == "C_gamma") for p in constants)


# +1 increasing, -1 decreasing; α on (-∞, -1) has the opposite sign of α on (-1, 1), which is listed.
SIGNS = {
    "c_alpha": dict(alpha=-1),
    "slope_gap": dict(alpha=-1),
    "steps_to": dict(eps=-1, L0=1, gamma=1, C0=1),
    "T_convex": dict(alpha=1, eps=-1, delta=-1, eta=-1, m=-1, n=1, d=1, L=1, C=1),
    "excess_recursion": dict(E0=1, k=-1, t=-1),
    "semismooth_rhs": dict(alpha=-1, w=1, omega=1, loss=1, n=1, L=1, m=1, d=-1, C1=1, C2=1),
    "ln_norm_var": dict(alpha=1, l=1, m=-1),
    "separation_lower": dict(delta=1, l=-1),
    "dual_act": dict(phi=-1, alpha=-1),
    "dual_dact": dict(phi=-1, alpha=1),
    "flips_random": dict(omega=1, m=1),
    "gen_lemma43": dict(loss=1, omega=1, alpha=-1, n=-1, L=1, m=1, d=1, C1=1, C2=1, C3=1),
    "appA_small_t": dict(kappa=-1, n=-1, L=-1, d=1, m=1, C=-1, C0=1, C2=1, C3=1),
    "exp_loss": dict(r2=1, lam=1),
    "gamma_hat": dict(L1=-1, L2=1, t1=-1, t2=1),
}
# Where the base is no place to see the sign.
SIGN_BASE = {"appA_small_t": dict(n=7.0, delta=0.01, alpha=0.5), "exp_loss": dict(r2=np.array([0.5, 2.0]))}


@pytest.mark.parametrize(("name", "argument"), [(f, p) for f, signs in SIGNS.items() for p in signs])
def test_monotone_as_the_formula_says(name, argument):
    arguments = base(name, **SIGN_BASE.get(name, {}))
    start = arguments[argument]
    values = [getattr(g, name)(**arguments | {argument: x}) for x in (start, start + 0.03 * abs(start))]
    assert np.sign(values[1] - values[0]) == SIGNS[name][argument]


SHAPED_BY_C = [f for f in MONOMIALS if "c" in MONOMIALS[f]] + [
    *("c_alpha", "slope_gap", "T_convex", "semismooth_rhs", "dual_act", "dual_dact", "gen_lemma43"),
]


@pytest.mark.parametrize("name", SHAPED_BY_C)
def test_extremal_at_minus_one_and_monotone_on_both_sides(name):
    """Corollary 3.3, and the same for every other function of c(α)."""
    alphas = np.concatenate([np.linspace(-6, -1, 60), np.linspace(-1, 0.9, 60)[1:]])
    values = getattr(g, name)(**base(name, alpha=alphas))
    steps = np.diff(values)
    assert np.argmax(np.abs(values - values[-1])) == 59
    assert (np.sign(steps[:59]) == -np.sign(steps[-1])).all()
    assert (np.sign(steps[59:]) == np.sign(steps[-1])).all()
    mirrored = getattr(g, name)(**base(name, alpha=1 / alphas[:59]))
    assert values[:59] == pytest.approx(mirrored, rel=1e-12)


def test_every_public_function_has_a_test_of_its_arguments():
    composite = {"gen_gd", "gen_sgd", "gen_special", "appA_at_T"}
    assert set(PUBLIC) == set(MONOMIALS) | set(SIGNS) | composite


@pytest.mark.parametrize(
    ("alpha", "c"),
    [(-10, 1.198), (-4, 1.471), (-2, 1.8), (-1, 2), (-0.5, 1.8), (0, 1), (0.01, 0.980), (0.05, 0.900)]
    + [(0.5, 0.2), (1, 0), (2, 0.2), (-np.inf, 1), (np.inf, 1)],
)
def test_c_alpha_values(alpha, c):
    assert g.c_alpha(alpha) == pytest.approx(c, abs=5e-4)
    assert g.slope_gap(alpha) == pytest.approx(np.sign(1 - alpha) * np.sqrt(c), abs=5e-4)


def test_c_alpha_is_the_squared_gap_and_symmetric():
    alphas = np.array([-37.0, -3.0, -1.25, -0.01, 1e-9, 0.3, 1.0, 1.7, 55.0])
    assert g.c_alpha(1 / alphas) == pytest.approx(g.c_alpha(alphas), rel=1e-14, abs=1e-300)
    assert g.slope_gap(alphas) == pytest.approx((1 - alphas) / np.sqrt(1 + alphas**2), rel=1e-14)
    assert 2 - g.c_alpha(alphas) == pytest.approx((1 + alphas) ** 2 / (1 + alphas**2), rel=1e-12)


def leaky(x, alpha):
    return np.where(x >= 0, x, alpha * x) / np.sqrt(1 + alpha**2)


def leaky_slope(x, alpha):
    return np.where(x >= 0, 1.0, alpha) / np.sqrt(1 + alpha**2)


DUALS = [("dual_act", leaky, 1 / np.pi), ("dual_dact", leaky_slope, 1 / (2 * np.pi))]
ANGLES = [0.0, 0.1, 0.9, np.pi / 2, 2.5, np.pi]


@pytest.mark.parametrize("alpha", [-4.0, -1.0, 0.0, 0.05, 1.0, 3.0])
@pytest.mark.parametrize("phi", ANGLES)
@pytest.mark.parametrize(("name", "s", "scale"), DUALS)
def test_dual_kernels_against_quadrature(name, s, scale, phi, alpha):
    """By homogeneity the Gaussian integral is one over the angle, times E R^2 = 2 for the activation."""
    kinks = [k % (2 * np.pi) for k in (np.pi / 2, 3 * np.pi / 2, np.pi / 2 + phi, 3 * np.pi / 2 + phi)]
    integral = sum(
        quad(lambda u: s(np.cos(u), alpha) * s(np.cos(u - phi), alpha), a, b)[0]
        for a, b in pairwise([0.0, *sorted(kinks), 2 * np.pi])
    )
    assert getattr(g, name)(phi, alpha) == pytest.approx(scale * integral, abs=1e-12)


@pytest.mark.parametrize("alpha", [-2.0, -1.0, 0.0, 0.05])
@pytest.mark.parametrize(("name", "s", "scale"), DUALS)
def test_dual_kernels_against_monte_carlo(name, s, scale, alpha):
    z = np.random.default_rng(0).standard_normal((2, 200_000))
    for phi in ANGLES[1:5]:
        samples = s(z[0], alpha) * s(np.cos(phi) * z[0] + np.sin(phi) * z[1], alpha)
        standard_error = samples.std(ddof=1) / np.sqrt(samples.size)
        assert abs(samples.mean() - getattr(g, name)(phi, alpha)) < 4 * standard_error


@pytest.mark.parametrize("alpha", [-1.0, 0.0, 0.5])
def test_remainder_of_eq_30_is_cubic_with_the_constant_1_over_6_pi(alpha):
    phi = 0.1
    remainder = g.dual_act(phi, alpha) - np.cos(phi) / 2
    assert remainder / (g.c_alpha(alpha) * phi**3) == pytest.approx(1 / (6 * np.pi), rel=2e-3)


@pytest.mark.parametrize("alpha", [-np.inf, -2.0, -1.0, 0.0, 0.5])
def test_ln_norm_var_against_the_norm_chain(alpha):
    """Given h_{l-1}, the m entries of g_l are independent N(0, 2 ‖h_{l-1}‖²/m); -∞ is ReLU reflected."""
    m, chains, rng = 1024, 2000, np.random.default_rng(1)
    slopes = (0.0, 1.0) if alpha == -np.inf else (1 / np.sqrt(1 + alpha**2), alpha / np.sqrt(1 + alpha**2))
    squared = rng.standard_normal((chains, m))
    log_norm = np.log(np.mean(squared**2, axis=1))
    for l in range(1, 4):
        z = rng.standard_normal((chains, m))
        log_norm += np.log(2 * np.mean(np.where(z >= 0, slopes[0] * z, slopes[1] * z) ** 2, axis=1))
        centred = log_norm - log_norm.mean()
        variance = np.mean(centred**2)
        standard_error = np.sqrt((np.mean(centred**4) - variance**2) / chains)
        exact = g.ln_norm_var(alpha, l, m)
        assert abs(variance - exact) < 3 * standard_error + 20 / m * exact, l


def test_random_flips_against_a_gaussian_perturbation():
    m, inputs, rng = 600, 400, np.random.default_rng(2)
    h = rng.standard_normal((m, inputs))
    h /= np.linalg.norm(h, axis=0)
    W, direction = rng.standard_normal((m, m)) * np.sqrt(2 / m), rng.standard_normal((m, m))
    before, change = W @ h, direction @ h / np.linalg.norm(direction, 2)
    for omega in (0.1, 0.5, 2.0):
        flips = np.sum(np.sign(before) != np.sign(before + omega * change), axis=0)
        standard_error = flips.std(ddof=1) / np.sqrt(inputs)
        exact = g.flips_random(omega, m)
        assert abs(flips.mean() - exact) < 4 * standard_error + 0.02 * exact


@pytest.mark.parametrize("omega", [0.003, 0.01, 0.03])
def test_adversarial_flips_against_the_smallest_preactivations(omega):
    """A rank-one W' of norm ω removes the k smallest preactivations as long as their squares sum to ω²."""
    m, rng = 100_000, np.random.default_rng(3)
    squares = np.sort(rng.normal(0, np.sqrt(2 / m), (20, m)) ** 2, axis=1)
    counts = np.sum(np.cumsum(squares, axis=1) <= omega**2, axis=1)
    standard_error = np.std(counts, ddof=1) / np.sqrt(20)
    exact = g.flips_adversarial(omega, m)
    assert abs(np.mean(counts) - exact) < 4 * standard_error + 0.01 * exact
    assert exact < g.flips_bound(omega, m, 1)


@pytest.mark.parametrize(("k", "tightness"), [(0.9, 0.65), (0.1, 0.9), (1e-4, 0.9998)])
def test_excess_recursion_is_an_envelope_and_sharp(k, tightness):
    excess, steps = [1.0], int(20 / k)
    for _ in range(steps):
        excess.append(excess[-1] - k * excess[-1] ** 2)
    envelope = g.excess_recursion(1.0, k, np.arange(steps + 1))
    assert (np.array(excess) <= envelope * (1 + 1e-12)).all()
    assert excess[-1] > tightness * envelope[-1]


def test_excess_recursion_has_the_step_ratio_of_gamma_convex():
    setting = dict(alpha=-1, delta=0.2, eta=1e-3, m=500, n=20, d=1, L=2)
    k = 1 - g.gamma_convex(E=1, **setting)
    for excess in (0.01, 0.5):
        assert g.gamma_convex(E=excess, **setting) == pytest.approx(1 - k * excess, rel=1e-13)
    T = g.T_convex(eps=0.01, **setting)
    logarithm = np.log(100 * 20 * np.sqrt(np.log(500)))
    assert T * (1 - g.gamma_convex(E=0.01, **setting)) == pytest.approx(logarithm)


@pytest.mark.parametrize("c_rhs", [0.2133, 1.0, 1e5, 1e40, 1e200])
def test_width_solves_its_equation_on_the_increasing_branch(c_rhs):
    m = g.width_special(0, 1, 1, 1, C=c_rhs)
    assert m / np.log(m) ** 4 == pytest.approx(c_rhs, rel=1e-9)
    assert m > np.exp(4)
    assert m * 1.001 / np.log(m * 1.001) ** 4 > c_rhs


def test_width_takes_integer_arrays_that_would_overflow():
    n = np.array([1000, 10**6])
    expected = [g.width_sgd(0, float(k), 10, 1, 1, 0.1) for k in n]
    assert g.width_sgd(0, n, 10, 1, 1, 0.1) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (g.width_gd(0, 1000, 5, 1, 0.21), 7.297e35),
        (g.width_gd(-1, 1000, 5, 1, 0.21), 3.521e35),
        (g.eta_max_gd(1000, 5, 5000, 1), 8e-9),
        (g.omega_gradient(1000, 5, 5000, 0.21), 7.008e-13),
        (g.width_sgd(0, 3000, 2, 10, 64, 0.21), 7.827e42),
        (g.width_special(0, 1000, 5, 1), 6.955e17),
        (g.gamma_hat(1, 0.276, 100, 1000), 0.99857),
        (g.C_gamma(g.gamma_hat(1, 0.276, 100, 1000)), 0.001429),
        (g.C_gamma(g.gamma_hat(1, 0.380, 100, 1000), C0=0.5), 0.0005373),
        (g.exp_loss(np.zeros((3, 8)), 0.1)[2], 4.0),
        (g.exp_loss([0.0, np.log(4)], 0.5), 1.5),
    ],
)
def test_values_of_the_papers_experiments(value, expected):
    assert value == pytest.approx(expected, rel=5e-4)


def theorem34(n=1000, L=5, d=1, delta=0.21, tau=0.1):
    """The arguments of `gen_gd` besides t and α, at the m and η of Theorem 3.4."""
    m = g.width_gen_gd(n, L, d, delta, tau)
    return dict(n=n, L=L, d=d, delta=delta, tau=tau, m=m, eta=g.eta_max_gd(n, L, m, d))


@pytest.mark.parametrize(("alpha", "steps"), [(-1, 8.23e8), (0, 1.645e9)])
def test_bound_at_the_time_of_convergence(alpha, steps):
    """Appendix A inverts T: where eq. (7) as printed has 34 in its third term, it has 10^-10."""
    setting = theorem34()
    gamma = g.gamma_gd(alpha, setting["eta"], 0.21, setting["m"], 1000, 1)
    T = g.steps_to(0.01, 1000 * np.sqrt(np.log(setting["m"])), gamma)
    assert pytest.approx(steps, rel=1e-3) == T
    parts = g.gen_gd(T, alpha, **setting, terms=True)
    assert parts == pytest.approx((0.01, 0.281, 34.3, 0.318), rel=2e-3)
    assert g.gen_gd(T, alpha, **setting) == sum(parts)
    at_T = {k: v for k, v in setting.items() if k != "eta"}
    upright = g.appA_at_T(0.01, alpha, **at_T, form="rederived", terms=True)
    assert upright == pytest.approx(parts[:3], rel=1e-6)
    inverted = g.appA_at_T(0.01, alpha, **at_T, terms=True)
    assert inverted[2] == pytest.approx(2.33e-10 * g.c_alpha(alpha), rel=2e-3)
    assert g.appA_at_T(0.01, alpha, **at_T) == pytest.approx(sum(inverted))


@pytest.mark.parametrize(("form", "powers"), [("printed", (11 / 6, 1)), ("rederived", (-5 / 6, -1))])
def test_appendix_a_reverses_the_dependence_on_alpha(form, powers):
    setting = {k: v for k, v in theorem34().items() if k != "eta"} | {"C1": 1e200, "C4": 1e200}
    at = {a: g.appA_at_T(0.01, a, **setting, form=form, terms=True) for a in (-1, 0)}
    for i, power in zip((1, 2), powers, strict=True):
        assert at[-1][i] / at[0][i] == pytest.approx(2**power)


@pytest.mark.parametrize("alpha", [-2.0, -1.0, 0.3])
def test_appendix_a_at_T_is_eq_7_at_the_inverted_time(alpha):
    setting = theorem34(n=300, L=4, d=3, delta=0.1, tau=0.2)
    log_term = np.log(300 * np.sqrt(np.log(setting["m"])) / 0.01)
    t = g.c_alpha(alpha) * 0.1 / (300 * 4) ** 2 * log_term
    expected = g.gen_gd(t, alpha, **setting, terms=True)[1:3]
    at_T = {k: v for k, v in setting.items() if k != "eta"}
    assert g.appA_at_T(0.01, alpha, **at_T, terms=True)[1:] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("kappa", [0.1, 0.5, 0.9])
def test_appendix_a_for_small_t_is_eq_7_at_its_width(kappa):
    n, L, d, delta, alpha = 500, 4, 3, 0.2, -2.0
    m = g.width_gen_gd(n, L, d, delta, 1e-15)
    t, eta = (n * L) ** (1 - kappa), g.eta_max_gd(n, L, m, d)
    expected = g.gen_gd(t, alpha, n, L, d, delta, m, eta, 1e-15, L0=np.log(m), C1=1e99, C4=1e99, terms=True)
    parts = g.appA_small_t(kappa, alpha, n, L, d, delta, m, terms=True)
    assert parts == pytest.approx(expected[:3], rel=1e-9)
    assert g.appA_small_t(kappa, alpha, n, L, d, delta, m) == sum(parts)


CELLS = [(n, L, kappa) for n, L in ((10**3, 5), (10**4, 5), (10**6, 10)) for kappa in (0.9, 0.5, 0.1)]
COARSE = np.array([-10.0, -4.0, -2.0, -1.0, -0.5, 0.0, 0.3, 0.6, 0.99])


def total_over_alpha(n, L, kappa, repaired=False, **options):
    setting = theorem34(n=n, L=L)
    loss = np.sqrt(np.log(setting["m"]))
    repair = dict(C2=n ** (2 / 3), C3=n**0.5) if repaired else {}
    return g.gen_gd((n * L) ** (1 - kappa), COARSE, **setting, L0=loss, **repair, **options)


@pytest.mark.parametrize(("n", "L", "kappa"), CELLS)
def test_printed_bound_is_best_at_minus_one_early_on_but_barely(n, L, kappa):
    total = total_over_alpha(n, L, kappa)
    assert COARSE[np.argmin(total)] == -1
    assert 1e-14 < np.ptp(total) / total.min() < 3e-5


LOST = [(10**3, 5, 0.1), (10**4, 5, 0.5), (10**4, 5, 0.1), (10**6, 10, 0.5), (10**6, 10, 0.1)]


@pytest.mark.parametrize(("n", "L", "kappa"), CELLS)
def test_optimum_at_minus_one_is_lost_with_the_factor_sqrt_n_restored(n, L, kappa):
    """The square root of the initial loss is √n ln(m)^{1/4}; all of Lemma 4.3's factors move every cell."""
    best = COARSE[np.argmin(total_over_alpha(n, L, kappa, repaired=True))]
    assert best == (0.99 if (n, L, kappa) in LOST else -1)
    setting = theorem34(n=n, L=L)
    rederived = g.gen_gd((n * L) ** (1 - kappa), COARSE, **setting, form="rederived")
    assert COARSE[np.argmin(rederived)] == 0.99


@pytest.mark.parametrize("kappa", [0.3, 0.7])
def test_early_stopping_needs_kappa_above_one_half_in_the_rederived_form(kappa):
    def third(n, form):
        setting = theorem34(n=n)
        return g.gen_gd((n * 5) ** (1 - kappa), -1, **setting, form=form, C4=1e99, terms=True)[2]

    for form, power in (("printed", -kappa), ("rederived", 0.5 - kappa)):
        slope = np.log(third(1e25, form) / third(1e24, form)) / np.log(10)
        assert slope == pytest.approx(power, abs=0.02)


# Exponents of the arguments of the minima, for symbols of which ln m is independent of m.
n, L, d, b, delta, m, t, tau, lnm, c = SYMBOLS = sympy.symbols("n L d b delta m t tau lnm c", positive=True)
HALF, THIRD = sympy.Rational(1, 2), sympy.Rational(1, 3)


def lemma43(omega):
    curved = sympy.sqrt(c) * d * lnm * sympy.sqrt(m) * L**2 * omega ** (4 * THIRD)
    return curved, d * sympy.sqrt(m * lnm / n) * L * omega


def exponents(expression):
    logarithm = sympy.expand_log(sympy.log(expression), force=True).expand()
    return {s: sympy.simplify(logarithm.coeff(sympy.log(s))) for s in SYMBOLS}


ETA_GD, ETA_SGD = d / (n * L**2 * m), d * delta / (n**3 * L**3 * m * lnm**2)
RADIUS = delta ** (3 * HALF) / (n * L**5 * lnm) ** (3 * HALF)
RADIUS_SPECIAL = 1 / (d * L**4 * lnm) ** (3 * HALF)
M_GD = n ** (5 + 2 * tau) * L ** (15 + 2 * tau) * d ** (1 + 2 * tau) / delta ** (4 - 2 * tau)
M_SGD = n ** (8 + 2 * tau) * L ** (15 + 2 * tau) * d ** (1 + 2 * tau) / (b * delta ** (5 - 2 * tau))
M_SPECIAL = n ** (1 + 2 * tau) * L ** (12 + 2 * tau) * d ** (5 + 2 * tau)
NONE = dict(C1=1.0, C2=1.0, C3=1.0, C4=1.0)
ONLY = {arm: NONE | {f"C{i + 1}": 1e90 for i in other} for arm, other in (("t", (0, 3)), ("cap", (1, 2)))}
GD = ETA_GD * t * sympy.sqrt(n * m * lnm / d)
SGD = ETA_SGD * t * sympy.sqrt(n * m / d)
# The function, the argument of its minima, ω and m in Lemma 4.3, what the two printed terms have besides.
SLIPS = [
    ("gen_gd", "t", GD, m, ({d: -4 * THIRD, lnm: -5 * THIRD}, {d: -1, lnm: -HALF})),
    ("gen_gd", "cap", RADIUS, M_GD, ({c: -HALF}, {d: -1, L: 1})),
    ("gen_sgd", "t", SGD, m, ({d: -4 * THIRD, delta: -4 * THIRD, lnm: -1}, {d: -1, delta: -1})),
    ("gen_sgd", "cap", RADIUS, M_SGD, ({c: -HALF}, {d: -1, L: 1})),
    ("gen_special", "t", GD, m, ({d: -4 * THIRD, lnm: -5 * THIRD}, {d: -1, lnm: -HALF})),
    ("gen_special", "cap", RADIUS_SPECIAL, M_SPECIAL, ({c: -HALF}, {})),
]


def measured(name, arm, index, symbol):
    """A symbol's exponent in a term of the bound, by finite logarithmic differences; ln m apart from m."""
    arguments = base(name, t=3.0, m=1e30, eta=1e-60) | ONLY[arm]

    def log_ratio(**changes):
        terms = (getattr(g, name)(**arguments | x, terms=True)[1 + index] for x in (changes, {}))
        return np.log(next(terms) / next(terms))

    if symbol in (m, lnm):
        steps = [[np.log(x / 1e30), np.log(np.log(x) / np.log(1e30))] for x in (1e35, 1e45)]
        return np.linalg.solve(steps, [log_ratio(m=x) for x in (1e35, 1e45)])[0 if symbol is m else 1]
    if symbol is c:
        changed = log_ratio(alpha=-1.0), g.c_alpha(-1.0) / g.c_alpha(arguments["alpha"])
        return changed[0] / np.log(changed[1])
    changes = {str(symbol): 1.5 * arguments[str(symbol)]} if str(symbol) in arguments else {}
    return log_ratio(**changes) / np.log(1.5)


@pytest.mark.parametrize("index", [0, 1])
@pytest.mark.parametrize(("name", "arm", "omega", "width", "slips"), SLIPS)
def test_printed_bounds_are_lemma_43_up_to_documented_powers(name, arm, omega, width, slips, index):
    expected = exponents(lemma43(omega)[index].subs(m, width))
    for symbol in set(SYMBOLS) - {tau}:
        power = expected[symbol].subs(tau, sympy.Rational(1, 5)) + slips[index].get(symbol, 0)
        assert measured(name, arm, index, symbol) == pytest.approx(float(power), abs=1e-6), symbol


@pytest.mark.parametrize(
    ("name", "width", "ratios"),
    [
        ("gen_gd", g.width_gen_gd(70, 3, 2, 0.3, 0.2, "rederived"), (1, 2 / 3)),
        ("gen_sgd", g.width_gen_sgd(70, 3, 2, 5, 0.3, 0.2, "rederived"), (1, 2 / 3)),
        ("gen_special", g.width_gen_special(70, 3, 2, 0.2), (1, 1)),
    ],
)
def test_time_free_arguments_are_as_printed_at_the_rederived_widths(name, width, ratios):
    """Up to √c in the first and d/L in the second."""
    arguments = base(name, m=width, eta=1 / width) | ONLY["cap"] | {"alpha": 0.0}
    printed = getattr(g, name)(**arguments, terms=True)
    rederived = getattr(g, name)(**arguments, form="rederived", terms=True)
    for i in (0, 1):
        assert rederived[1 + i] / printed[1 + i] == pytest.approx(ratios[i], rel=1e-9)


def omega_sgd(t, eta, n, m, d, b=5.0):
    return eta * t * np.sqrt(b * m / d * n * np.sqrt(np.log(m)))


@pytest.mark.parametrize(
    ("name", "t", "omega"),
    [
        ("gen_gd", 1.0, g.omega_direct(1, 1e-13, 70, 50, 2, form="rederived")),
        ("gen_gd", 1e12, g.omega_gradient(70, 3, 50, 0.3)),
        ("gen_sgd", 1.0, omega_sgd(1, 1e-13, 70, 50, 2)),
        ("gen_sgd", 1e12, g.omega_gradient(70, 3, 50, 0.3)),
        ("gen_special", 1.0, g.omega_direct(1, 1e-13, 70, 50, 2, form="rederived")),
        ("gen_special", 1e12, g.omega_special(3, 50, 2)),
    ],
)
def test_rederived_bounds_are_lemma_43_at_the_smaller_radius(name, t, omega):
    arguments = base(name, t=t, eta=1e-13) | NONE | {"C5": 1.0}
    train = getattr(g, name)(**arguments, form="rederived", terms=True)[0]
    lemma = g.gen_lemma43(**base("gen_lemma43", loss=70 * train, omega=omega, C1=1, C2=1, C3=1))
    assert getattr(g, name)(**arguments, form="rederived") == pytest.approx(lemma, rel=1e-12)


def test_printed_and_rederived_direct_radii_differ_by_the_lost_root_of_the_loss():
    arguments = dict(t=7, eta=1e-3, n=30, m=1e5, d=2)
    ratio = g.omega_direct(**arguments, form="rederived") / g.omega_direct(**arguments)
    assert ratio == pytest.approx(np.sqrt(30) * np.log(1e5) ** -0.25)


@pytest.mark.parametrize("alpha", [-1.0, 0.0, 0.5])
def test_width_of_theorem_31_puts_the_universal_radius_into_that_of_the_gradient_bounds(alpha):
    """Lemma B.9 at constants 1: eqs. (108) and (111) leave the factor ln(m)^{-1/4}."""
    n, L, d, delta = 50, 3, 2, 0.2
    m = g.width_gd(alpha, n, L, d, delta)
    universal = g.omega_universal(n, d, delta, m, n * np.sqrt(np.log(m)), alpha)
    assert universal / g.omega_gradient(n, L, m, delta) == pytest.approx(np.log(m) ** -0.25, rel=1e-9)
    without = g.omega_universal(n, d, delta, m, n * np.sqrt(np.log(m)))
    assert universal / without == pytest.approx(g.c_alpha(alpha) ** -0.5)


@pytest.mark.parametrize("alpha", [-1.0, 0.0, 0.5])
def test_width_of_theorem_b14_follows_from_its_proof(alpha):
    n, L, d = 50, 3, 2
    m = g.width_special(alpha, n, L, d)
    universal = d * np.sqrt(n * np.sqrt(np.log(m)) / (g.c_alpha(alpha) * m))  # eqs. (165) and (108)
    assert universal / g.omega_special(L, m, d) == pytest.approx(np.log(m) ** -0.25, rel=1e-9)


def test_improvements_over_zou_and_gu():
    setting = dict(alpha=0, eta=1e-6, delta=0.2, m=1000, n=20, d=2)
    assert (1 - g.gamma_gd(**setting)) / (1 - g.gamma_gd_zou_gu(**setting, L=7)) == pytest.approx(7)
    batch = (1 - g.gamma_sgd(**setting, b=5)) / (1 - g.gamma_sgd_zou_gu(**setting, b=5, L=7))
    assert batch == pytest.approx(7)
    assert (1 - g.gamma_sgd(**setting, b=5)) / (1 - g.gamma_gd(**setting)) == pytest.approx(5 / 20)
    special = (1 - g.gamma_special(0, 1e-6, 1000, 2)) / (1 - g.gamma_gd(**setting))
    assert special == pytest.approx(20 / (0.2 * 2))


def test_steps_to_inverts_the_decay():
    T = g.steps_to(1e-3, 7.0, 0.97, C0=2)
    assert pytest.approx(1e-3) == 2 * 7.0 * 0.97**T
    assert g.gamma_hat(7.0, 7.0 * 0.97**30, 20, 50) == pytest.approx(0.97)


def test_training_term_keeps_rates_that_round_to_one():
    """1 - γ is 2·10⁻¹⁵ here, of which the rounded γ keeps one digit."""
    setting = theorem34(n=10**6, L=10)
    rate = 0.21 / (10**6 * 10) ** 2
    train = g.gen_gd(1e15, 0, **setting, L0=1.0, terms=True)[0]
    assert train == pytest.approx(np.exp(-1e15 * rate), rel=1e-9)


def test_initial_losses_by_default():
    a = theorem34() | {"t": 0.0, "alpha": 0}
    root = np.sqrt(np.log(a["m"]))
    assert g.gen_gd(**a, terms=True)[0] == pytest.approx(1000 * root)
    assert g.gen_gd(**a, form="rederived", terms=True)[0] == pytest.approx(root)
    assert g.gen_gd(**a, form="rederived", L0=30.0, terms=True)[0] == pytest.approx(0.03)
    assert g.gen_sgd(**a, b=10, terms=True)[0] == pytest.approx(root**2)
    assert g.gen_sgd(**a, b=10, form="rederived", terms=True)[0] == pytest.approx(root)
    del a["delta"]
    assert g.gen_special(**a, terms=True)[0] == pytest.approx(1000 * root)
    assert g.gen_special(**a, form="rederived", terms=True)[0] == pytest.approx(root)


@pytest.mark.parametrize("case", ["gd", "sgd", "special"])
def test_training_and_data_terms(case):
    """The first term decays at the rate of the corresponding theorem."""
    parts = getattr(g, f"gen_{case}")(**base(f"gen_{case}"), terms=True)
    gamma = getattr(g, f"gamma_{case}")(**base(f"gamma_{case}"))
    assert parts[0] == pytest.approx(11.0 * gamma**9, rel=1e-12)
    assert parts[3] == pytest.approx(0.9 * 2 * np.sqrt(np.log(50) / 70))


def test_broadcasting_over_alpha_and_t():
    alphas, times = np.array([-np.inf, -1.0, 0.0]), np.array([[1.0], [10.0]])
    total = g.gen_gd(times, alphas, **theorem34())
    assert total.shape == (2, 3)
    assert total[1, 2] == g.gen_gd(10, 0, **theorem34())
    assert total[:, 0] == pytest.approx(total[:, 2])
    assert isinstance(g.c_alpha(-1), float)


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("gamma_gd", dict(alpha=1)),
        ("gamma_gd", dict(alpha=np.array([0.0, 1.5]))),
        ("gamma_gd", dict(alpha=np.nan)),
        ("gamma_gd", dict(n=0.5)),
        ("gamma_gd", dict(m=np.inf)),
        ("gamma_gd", dict(C=0)),
        ("gamma_gd", dict(delta=np.inf)),
        ("excess_recursion", dict(t=np.inf)),
        ("gamma_sgd", dict(b=71)),
        ("width_gd", dict(delta=0)),
        ("width_gd", dict(alpha=1.0)),
        ("width_gd", dict(n="many")),
        ("width_special", dict(C=1e-12)),
        ("omega_direct", dict(form="exact")),
        ("omega_direct", dict(t=-1)),
        ("omega_semismooth", dict(m=1)),
        ("omega_universal", dict(L0=None)),
        ("semismooth_rhs", dict(alpha=1.01)),
        ("steps_to", dict(gamma=1.0)),
        ("dual_act", dict(phi=3.2)),
        ("c_alpha", dict(alpha=np.nan)),
        ("appA_small_t", dict(kappa=1)),
        ("appA_at_T", dict(eps=1e9)),
        ("gamma_hat", dict(t2=10)),
        ("gen_gd", dict(eta=1000)),
        ("gen_gd", dict(form="exact")),
        ("gen_gd", dict(tau=0)),
        ("gen_sgd", dict(b=0)),
        ("gen_special", dict(d=0)),
    ],
)
def test_out_of_range_parameters_are_refused(name, changes):
    getattr(g, name)(**base(name))
    with pytest.raises(ParameterError):
        getattr(g, name)(**base(name, **changes))


def test_linear_network_has_a_quadratic_remainder_only():
    value = g.semismooth_rhs(**base("semismooth_rhs", alpha=1.0))
    assert value == pytest.approx(0.7 * 70 * 9 * 50 / 2 * 1e-4)
    assert g.semismooth_rhs(**base("semismooth_rhs", w=0.0)) == 0


def test_semismooth_terms_add_up():
    kink = g.semismooth_rhs(**base("semismooth_rhs")) - g.semismooth_rhs(**base("semismooth_rhs", alpha=1.0))
    expected = 1.3 * g.back_perturb_bound(-0.3, 0.02, 3, 50, 2) * np.sqrt(70 * 4.0) * 0.01
    assert kink == pytest.approx(expected)


@pytest.mark.parametrize("l", [1, 5])
def test_ln_norm_var_is_even_and_least_at_the_unit_slopes(l):
    alphas = np.linspace(-3, 3, 601)
    values = g.ln_norm_var(alphas, l, 100)
    assert values == pytest.approx(values[::-1], rel=1e-13)
    assert abs(alphas[np.argmin(values)]) == pytest.approx(1)
    assert alphas[np.argmax(values)] == pytest.approx(0, abs=1e-12)


def test_formulas_without_a_power_law():
    assert g.separation_lower(0.3, np.arange(3)) == pytest.approx([0.15, 0.075, 0.05])
    assert g.ln_norm_var(0, 1, 100) == pytest.approx(0.07)
    assert g.ln_norm_var(-1, 4, 100) == pytest.approx(0.10)
    assert g.ln_norm_var(-np.inf, 1, 100) == pytest.approx(0.07)
