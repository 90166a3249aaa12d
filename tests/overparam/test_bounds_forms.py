"""All formulas: the powers that the papers print, constants of 1, arrays, refusals.

What they mean: the other files.
"""

import inspect
from fractions import Fraction

import numpy as np
import pytest

from overparam.bounds import allenzhu2019, arora2019, frei2019, guo2024, noy2021
from overparam.errors import ParameterError

# Values inside the ranges, and for every letter one outside.
BASE = {
    allenzhu2019: dict(
        n=37,
        L=9,
        m=900,
        d=3,
        b=5,
        k=4,
        q=3,
        positions=9,
        l=6,
        delta=0.07,
        eps=0.2,
        omega=0.003,
        w=0.002,
        s=40,
        F=4.2,
        tau=0.01,
        eta=1e-4,
        t=0.4,
        sigma=0.9,
        D=2.5,
        kappa=0.4,
        alpha=-0.3,
        wnorm=2.5,
        h0sq=1.1,
    ),
    arora2019: dict(
        n=37,
        m=900,
        lam0=0.43,
        kappa=0.21,
        delta=0.07,
        eps=0.6,
        eta=0.3,
        Phi0=41.5,
        k=17,
        res0=5.3,
        yHy=130.0,
        B=7.1,
        R=0.15,
    ),
    frei2019: dict(
        tau=0.3,
        gamma=0.17,
        m=900,
        n=37,
        delta=0.07,
        K=60,
        eta=0.01,
        k=60,
        ES=0.21,
        theta=0.03,
        L=9,
        l=5,
        h=0.4,
        s=40,
        abar=0.21,
        d=20,
        beta=0.3,
        eps=0.5,
        xnorm=1.4,
    ),
    guo2024: dict(
        alpha=-0.3,
        n=70.0,
        L=3.0,
        d=2.0,
        b=5.0,
        delta=0.3,
        m=50.0,
        eta=1e-2,
        tau=0.2,
        eps=0.1,
        t=9.0,
        omega=0.02,
        w=0.01,
        loss=4.0,
        E=0.7,
        l=3.0,
        gamma0=0.9,
        phi=1.1,
        L1=3.0,
        L2=2.0,
        t1=10.0,
        t2=30.0,
        L0=11.0,
    ),
    noy2021: dict(
        n=70.0,
        L=3.0,
        m=50.0,
        dx=6.0,
        dy=2.0,
        eps=1e-3,
        eta=1e-4,
        znorm=2.0,
        alpha2=0.3,
        beta2=5.0,
        beta_x=2.0,
        loss0=7.0,
        theta=0.2,
        k=3.0,
        delta=0.1,
        tau=1e-3,
        cosine=0.3,
        r1=0.1,
        r2=0.3,
        log10_m=5.0,
    ),
}
OUTSIDE = {
    allenzhu2019: dict(
        n=0,
        L=0,
        m=1.9,
        d=0,
        b=0,
        k=0,
        q=0,
        positions=0,
        l=-1.5,
        delta=2.1,
        eps=1.1,
        omega=-0.1,
        w=-0.1,
        s=-0.1,
        F=-0.1,
        tau=-0.1,
        eta=0,
        t=0,
        sigma=0,
        D=0,
        kappa=1.1,
        alpha=np.inf,
        wnorm=-0.1,
        h0sq=-0.1,
    ),
    arora2019: dict(
        n=0,
        m=0.5,
        lam0=1.01,
        kappa=0,
        delta=0,
        eps=0,
        eta=50.0,
        Phi0=-1,
        k=-1,
        res0=-1,
        yHy=-1,
        B=-1,
        R=-1,
    ),
    frei2019: dict(
        tau=-0.1,
        gamma=1.01,
        m=1,
        n=0,
        delta=0,
        K=0,
        eta=0,
        k=-1,
        ES=1.1,
        theta=-1,
        L=0,
        l=0,
        h=-1,
        s=-1,
        abar=-0.1,
        d=0,
        beta=-1,
        eps=0,
        xnorm=-1,
    ),
    guo2024: dict(
        n=0.5,
        L=0.5,
        d=0.5,
        b=0,
        delta=np.inf,
        m=np.inf,
        eta=0,
        tau=0,
        eps=0,
        t=-1,
        omega=-1,
        w=-1,
        loss=-1,
        E=-1,
        l=-1,
        gamma0=0,
        phi=3.2,
        L1=0,
        L2=0,
        t1=-1,
        t2=-1,
        L0=0,
    ),
    noy2021: dict(
        n=0.5,
        L=0,
        m=0,
        dx=0,
        dy=0,
        eps=0,
        eta=0,
        znorm=-1,
        alpha2=0,
        beta2=0,
        beta_x=0,
        loss0=0,
        theta=0.6,
        k=-1,
        delta=1.1,
        tau=-1,
        cosine=1.1,
        r1=-1,
        r2=-1,
        log10_m=-1,
    ),
}
# "lnm" is log m, "lnnL" log(nL), "lneps" log(1/ε), "cα" guo2024.c_alpha(α); a number is the factor.
POWERS = {
    allenzhu2019: {
        "sparse_level": "m L^-1 lnm^-1",
        "sparse_bilinear": "s^1/2 lnm^1/2 m^-1/2",
        "separation_width": "L lnnL delta^-6",
        "sign_changes": "m omega^2/3 L",
        "hidden_change": "omega L^5/2 lnm^1/2",
        "grad_upper": "F L n m d^-1",
        "grad_lower": "F delta m d^-1 n^-2",
        "lem93_lower": "1/2000 F delta m d^-1 n^-1",
        "claim94_miss": "1/8 n^-1",
        "gradient_change": "n F m lnm d^-1 omega^2/3 L^4",
        "thm3_radius": "delta^3/2 n^-9/2 L^-6 lnm^-3",
        "thm5a": "lnm^1/2 omega^1/3 L^3",
        "thm5b": "kappa^-1/3 L^3 omega^4/3 m^1/2 lnm^1/2 d^-1/2",
        "thm1_lr": "d delta n^-4 L^-2 m^-1",
        "thm1_rate": "eta delta m d^-1 n^-2",
        "thm1_movement": "n^3 d^1/2 m^-1/2 lnm delta^-1",
        "thm1_radius": "delta^3 n^-9 L^-6 lnm^-3/2",
        "thm2_lr": "b delta d n^-5 L^-2 m^-1 lnm^-2",
        "thm2_movement": "n^7/2 d^1/2 b^-1/2 m^-1/2 lnm delta^-1",
        "thm2_growth": "eta L m n^3/2 b^-1/2 d^-1/2",
        "cnn_tau": "1/10 delta^2 positions^-1 L^-1",
        "resnet_tau": "L^-1 lnm^-1",
    },
    arora2019: {
        "thm31_width": "n^6 lam0^-4 kappa^-2 delta^-3",
        "thm31_eta": "lam0 n^-2",
        "thm41_width": "n^7 lam0^-4 kappa^-2 delta^-4 eps^-2",
        "thm41_kappa": "eps delta n^-1/2",
        "lemC1_R": "4 n^1/2 res0 m^-1/2 lam0^-1",
        "lemC2_H": "n^3 m^-1/2 lam0^-1 kappa^-1 delta^-3/2",
    },
    frei2019: {
        "thm35_tau_max": "gamma^12 lnm^-3/2",
        "thm35_Keta_max": "tau^2 gamma^4 lnn/δ^-1/2",
        "thm35_surrogate": "K^-1/2 eta^-1/2 m^-1/2 lnn/δ^1/4 gamma^-2",
        "lem43_lower": "m gamma^4 ES^2",
    },
    guo2024: {
        "width_gen_gd": "n^52/5 L^77/5 d^7/5 delta^-18/5",
        "eta_max_gd": "d n^-1 L^-2 m^-1",
        "eta_max_sgd": "d delta m^-1 n^-3 L^-3 lnm^-2",
        "burnin_sgd": "cα^-2 n^5 L^2 b^-1 delta^-2 lnm^2",
        "omega_gradient": "delta^3/2 n^-3/2 L^-15/2 lnm^-3/2",
        "omega_direct": "eta t n^1/2 m^1/2 lnm^1/2 d^-1/2",
        "grad_lower": "cα delta m loss n^-1 d^-1",
        "separation_lower": "1/8 delta",
        "prod_norm_bound": "L^1/2",
        "back_bound": "m^1/2 d^-1/2",
        "flips_bound": "m omega^2/3 L",
        "dg_bound": "cα^1/2 omega L^3/2",
        "hprime_bound": "omega L^5/2 lnm^1/2",
        "back_perturb_bound": "cα^1/2 omega^1/3 L^2 m^1/2 lnm^1/2 d^-1/2",
        "linearisation_bound": "cα^1/2 omega^4/3 L^2 m^1/2 lnm^1/2",
    },
    noy2021: {
        "width_zou2018": "n^26 L^38",
        "width_allenzhu2019": "n^24 L^12",
        "width_zou2019": "n^8 L^12",
        "width_noy2021": "n^2 L dy",
        "iters_zou2018": "n^8 L^9",
        "iters_allenzhu2019": "n^6 L^2 lneps",
        "iters_zou2019": "n^2 L^2 lneps",
        "step_zou2018": "n^-29 L^-47",
        "step_allenzhu2019": "n^-28 lnm^-5 L^-14",
        "step_zou2019": "n^-8 L^-14",
        "step_noy2021": "dx n^-4 L^-3 dy^-1",
        "step_at_width": "dx dy m^-2 L^-1",
        "ntk_diagonal": "L m^2 dx^-1 dy^-1",
        "alpha_x": "1/12 m dx^-1",
        "beta_x": "27/4 m dx^-1",
        "ntk_ratio": "n^1/2 dx L^2 dy^2 m^-5/2",
        "loss0_bound": "4 m n dx^-1",
    },
}
# 1 - γ of the rates, and m/ln⁴m of the widths
RATES = {
    "gamma_gd": "cα eta delta m n^-1 d^-1",
    "gamma_sgd": "cα eta b delta m n^-2 d^-1",
    "gamma_special": "cα eta m d^-2",
    "gamma_convex": "cα E delta eta m n^-2 d^-1 L^-1",
    "C_gamma": "",
}
WIDTHS = {
    "width_gd": "cα^-1 n^5 L^15 d delta^-4",
    "width_sgd": "cα^-4 n^8 L^15 d b^-1 delta^-5",
    "width_special": "cα^-1 n L^12 d^5",
}


def public(module):
    return {
        name: function
        for name, function in vars(module).items()
        if inspect.isfunction(function)
        and function.__module__ == module.__name__
        and not name.startswith("_")
    }


def monomial(text, values):
    """The product that a row of POWERS stands for."""
    logs = {
        "lnm": lambda: np.log(values["m"]),
        "lnnL": lambda: np.log(values["n"] * values["L"]),
        "lnn/δ": lambda: np.log(values["n"] / values["delta"]),
        "lneps": lambda: np.log(1 / values["eps"]),
        "cα": lambda: (1 - values["alpha"]) ** 2 / (1 + values["alpha"] ** 2),
    }
    product = 1.0
    for factor in text.split():
        letter, _, power = factor.partition("^")
        if letter[0].isdigit():
            product *= float(Fraction(letter))
        else:
            value = logs[letter]() if letter in logs else values[letter]
            product *= value ** float(Fraction(power or 1))
    return product


def arguments(module, name):
    """{letter: value in BASE} of the function, or None if it takes something else besides."""
    parameters = inspect.signature(public(module)[name]).parameters
    needed = [p.name for p in parameters.values() if p.default is p.empty]
    if name == "thm6_iters":
        return {"kind": "pl", **{x: BASE[module][x] for x in parameters if x in BASE[module]}}
    return (
        {x: BASE[module][x] for x in parameters if x in BASE[module]}
        if set(needed) <= set(BASE[module])
        else None
    )


@pytest.mark.parametrize(
    ("module", "name"), [(module, name) for module in POWERS for name in POWERS[module]]
)
def test_the_powers_are_the_papers(module, name):
    given, function = arguments(module, name), public(module)[name]
    expected = monomial(POWERS[module][name], BASE[module])
    if name == "lem43_lower":  # whose default constant is the proof's
        given["C"] = 1
    assert function(**given) == pytest.approx(expected, rel=1e-11)
    for constant in {"C", "c", "nu", "nu2"} & set(inspect.signature(function).parameters):
        assert function(**{**given, constant: 0.3}) == pytest.approx(0.3 * expected, rel=1e-11)
    if "log10" in inspect.signature(function).parameters:
        assert function(**given, log10=True) == pytest.approx(np.log10(expected), abs=1e-11)


def test_the_rates_and_widths_of_guo2024():
    for name, row in RATES.items():
        rate = 1 - BASE[guo2024]["gamma0"] if name == "C_gamma" else monomial(row, BASE[guo2024])
        value = public(guo2024)[name](**arguments(guo2024, name))
        assert (value if name == "C_gamma" else 1 - value) == pytest.approx(rate, rel=1e-9)
    for name, row in WIDTHS.items():
        m = public(guo2024)[name](**arguments(guo2024, name))
        assert m / np.log(m) ** 4 == pytest.approx(monomial(row, BASE[guo2024]), rel=1e-9)


EVERY = [(module, name) for module in BASE for name in public(module) if arguments(module, name)]
WHOLE = {"log_ratio_moments": "m", "prop113_diagonal": "a b", "gate_cosines": "depth"}


@pytest.mark.parametrize(("module", "name"), EVERY)
def test_values_out_of_range_are_refused(module, name):
    """Beyond the range, not a number, or no number: also as one entry of an array."""
    given, function = arguments(module, name), public(module)[name]
    letters = set(given) & set(OUTSIDE[module]) - set(WHOLE.get(name, "").split())
    for letter in letters:
        for bad in (OUTSIDE[module][letter], np.nan, "many"):
            with pytest.raises(ParameterError, match=letter):
                function(**{**given, letter: bad})
        with pytest.raises(ParameterError, match=letter):
            function(**{**given, letter: np.array([given[letter], OUTSIDE[module][letter]])})


@pytest.mark.parametrize(("module", "name"), EVERY)
def test_arrays_give_the_values_of_their_entries(module, name):
    given, function = arguments(module, name), public(module)[name]
    whole = WHOLE.get(name, "").split()
    arrays = {
        x: v if x in whole or isinstance(v, str) else np.array([v, v]) for x, v in given.items()
    }
    value, values = np.asarray(function(**given)), np.asarray(function(**arrays))
    np.testing.assert_allclose(
        values, np.stack([value, value], -1) if whole != list(given) else value, rtol=1e-12
    )


def test_integers_do_not_overflow():
    n = np.array([10, 10_000])
    assert arora2019.thm41_width(n, 0.5, 1.0, 1.0, 1.0) == pytest.approx(
        [16e7, 16e28]
    )  # above an int64
    assert allenzhu2019.thm1_lr(10**5, 3, 0.5, 10**30, 1) == pytest.approx(0.5 / 9e50)
    assert guo2024.width_sgd(0, 10**6, 10, 1, 1, 0.1) == pytest.approx(
        guo2024.width_sgd(0, 1e6, 10, 1, 1, 0.1)
    )
