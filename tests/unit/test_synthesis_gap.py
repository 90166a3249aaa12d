"""Theory and practice: kernels against finite differences of wide nets, the search against brute force."""

import math
from itertools import pairwise

import numpy as np
import pytest
import torch

from overparam.bounds import arora2019, requirements
from overparam.data import load
from overparam.experiments import synthesis_gap
from overparam.experiments.synthesis_gap import PAPERS, Problem, Search

TARGET = {"squared": 0.01, "surrogate": 0.1}


def problem(n=4, d=9):
    return Problem.of(load("sphere", n_train=8, n_test=0, seed=3, d=d), n, dtype=torch.float64)


def search(**changed):
    setting = {
        "seeds": [0, 1, 2],
        "target": TARGET,
        "steps": 60,
        "powers": [0, -1],
        "widths": synthesis_gap.width_grid(64),
    }
    return Search(**{**setting, **changed})


@pytest.mark.parametrize("paper", PAPERS)
def test_kernels_are_those_of_wide_nets(paper):
    """How the outputs move when the weights take a small step for one example, mean over seeds."""
    p, m, step = problem(), 400, 1e-6
    nets, x, _ = synthesis_gap.runs_of(paper, p, m, 3, list(range(8)))
    columns = []
    for i in range(4):
        descent = nets.descent(x)
        before = descent.forward().clone()
        push = torch.zeros_like(before)
        push[:, i] = step
        descent.descend(push)
        columns.append(((before - descent.forward()) / step).reshape(8, 4).mean(0))
    expected = synthesis_gap.kernel(paper, p, 3) * float(m) ** synthesis_gap.POWER[paper]
    torch.testing.assert_close(torch.stack(columns), expected, rtol=0, atol=0.15 * float(expected.diagonal().max()))


def test_the_span_keeps_the_inner_products_and_the_dimension():
    data = load("sphere", n_train=8, n_test=0, seed=3, d=9)
    p = Problem.of(data, 4, dtype=torch.float64)
    assert p.x.shape == (4, 4)
    assert p.d == 9
    torch.testing.assert_close(p.x @ p.x.T, data.x_train[:4] @ data.x_train[:4].T)


def test_the_limit_is_nine_tenths_of_the_stable_step():
    p = problem()
    largest = {paper: float(torch.linalg.eigvalsh(synthesis_gap.kernel(paper, p, 2))[-1]) for paper in PAPERS}
    assert synthesis_gap.limit("arora", p, 50, 2) == pytest.approx(1.8 / largest["arora"])
    assert synthesis_gap.limit("noy", p, 50, 2) == pytest.approx(1.8 / largest["noy"] / 50**2)
    assert synthesis_gap.limit("guo", p, 50, 2) == pytest.approx(
        0.9 / largest["guo"] / 50
    )  # the loss is a sum, not half of it
    assert synthesis_gap.limit("frei", p, 50, 2) == pytest.approx(
        0.9 * 8 * 4 / largest["frei"] / 50
    )  # l'' <= 1/4, a mean of 4


def test_the_loss_is_the_surrogate_error_and_the_wrong_signs():
    y = torch.tensor([1.0, -1.0, 1.0], dtype=torch.float64)
    u = torch.tensor([2.0, 0.5, -1.0], dtype=torch.float64)
    value, derivative = synthesis_gap.ErrorLoss(y)(u)
    terms = [1 / (1 + math.exp(z)) for z in (2.0, -0.5, -1.0)]
    assert float(value) == pytest.approx(2 + sum(terms) / 3)
    u.requires_grad_()
    torch.nn.functional.softplus(-u * y).mean().backward()
    torch.testing.assert_close(derivative, u.grad)


def test_widths_are_even_and_a_root_of_two_apart():
    widths = synthesis_gap.width_grid(512)
    assert widths[0] == 2
    assert widths[-1] == 512
    assert all(m % 2 == 0 for m in widths)
    assert all(1.3 < b / a < 1.5 for a, b in pairwise(widths[4:]))


def test_bisection_finds_every_threshold_from_every_start():
    for count in (1, 2, 7, 12):
        for threshold in range(count + 1):
            for start in range(count + 2):
                assert synthesis_gap.smallest(lambda k, t=threshold: k >= t, count, start) == threshold


def test_demands_are_the_explorers_rows():
    facts = {"n": 8, "d": 20, "delta": 0.5, "lam0": 0.1, "gamma": 0.2}
    found = synthesis_gap.demanded(facts, 3, TARGET, 0.05)
    for eps, papers in {0.04: ("arora", "allenzhu", "noy"), 0.1: ("frei",), 0.08: ("guo",)}.items():
        rows = dict(zip(PAPERS, requirements.requirements(**facts, L=3, eps=eps, alpha=-1.0, p=0.05), strict=True))
        for paper in papers:
            assert [found[paper].width, found[paper].steps] == pytest.approx([rows[paper].width, rows[paper].steps])


def test_the_constants_of_the_proofs():
    facts = {"n": 8, "d": 20, "delta": 0.5, "lam0": 0.1, "gamma": 0.2}
    found = synthesis_gap.with_constants(facts, 2, 0.05)
    n, m, lam0, p = 8, 10 ** found["arora"][0], 0.1, 0.05
    R = arora2019.lemC1_R(n, m, lam0, math.sqrt(1.5 * n / p))
    assert 4 * n**2 * R / (math.sqrt(2 * math.pi) * p) == pytest.approx(lam0 / 4)  # Lemma C.2 up to its second term
    assert found["noy"][0] == pytest.approx(2 * math.log10(2 * 81**2 * n))


@pytest.mark.parametrize("paper", ["arora", "frei", "guo"])
def test_a_measurement_is_what_brute_force_finds(paper):
    p, setting = problem(), search()
    table = [np.isfinite(setting.first(paper, p, m, 2, setting.powers)) for m in setting.widths]
    enough = [rows.all(1).any() for rows in table]
    first = next(k for k, _ in enumerate(enough) if all(enough[k:]))
    found = synthesis_gap.measure(paper, p, 2, setting, 4)
    assert enough[setting.widths.index(found["width"])]
    assert found["width"] <= setting.widths[first]
    assert found["lucky"] <= found["unlucky"] <= found["width"]
    power = (10 ** found["step"]) / synthesis_gap.limit(paper, p, 4 * found["width"], 2)
    power /= (4 * found["width"]) ** synthesis_gap.POWER[paper]
    assert math.log2(power) == pytest.approx(round(math.log2(power)))
    assert np.isfinite(setting.first(paper, p, 4 * found["width"], 2, [round(math.log2(power))])).all()


def test_a_net_that_never_reaches_the_target_has_no_width():
    found = synthesis_gap.measure("arora", problem(), 2, search(steps=1, widths=[2, 4]), 4)
    assert all(math.isnan(value) for value in found.values())


def test_the_survey_gives_every_cell_its_own_measurement():
    problems, setting = {("sphere", n): problem(n) for n in (2, 4)}, search()
    cells = [("arora", ("sphere", n), 1) for n in (2, 4)]
    found = synthesis_gap.survey(cells, problems, setting)
    assert list(found) == cells[::-1]
    assert found[cells[1]] == synthesis_gap.measure("arora", problems["sphere", 4], 1, setting, 4)


def test_as_demanded_takes_width_and_step_from_the_row():
    p = problem()
    good = requirements.Requirement(
        "", "", math.log10(256), math.log10(synthesis_gap.limit("arora", p, 256, 1)), 0, 0, 0
    )
    wild = requirements.Requirement("", "", math.log10(256), 3.0, 0, 0, 0)
    assert synthesis_gap.at_demand("arora", p, 1, search(), good) == 1
    assert synthesis_gap.at_demand("arora", p, 1, search(), wild) == 0
