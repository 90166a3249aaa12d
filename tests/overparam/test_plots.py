"""Lines and ticks: the same picture as the seaborn and matplotlib calls that they replace."""

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import seaborn as sns

from overparam import plots

mpl.use("agg")


@pytest.fixture(autouse=True)
def nothing_stays_open():
    with mpl.rc_context():
        yield
    plt.close("all")


@pytest.fixture
def table():
    draw = np.random.default_rng(0)
    index = pd.MultiIndex.from_product([["a", "b"], range(3), [1, 10, 100]])
    runs = index.to_frame(index=False, name=["net", "seed", "m"])
    return runs.assign(loss=draw.random(len(runs)))


def picture(fig):
    fig.canvas.draw()
    return np.asarray(fig.canvas.buffer_rgba())


@pytest.mark.parametrize("more", [{}, {"markers": True, "mew": 0}, {"estimator": "median"}])
def test_lines_are_pixel_for_pixel_those_of_seaborn(table, more):
    ours, [[ax]] = plots.figure()
    plots.lines(table, "m", "loss", by="net", ax=ax, **more)
    theirs, [[ax]] = plots.figure()
    both = {"hue": "net", "style": "net"}
    sns.lineplot(table, x="m", y="loss", errorbar=("pi", 100), ax=ax, **both, **more)
    assert np.array_equal(picture(ours), picture(theirs))


def test_a_line_is_the_mean_and_its_band_goes_from_the_smallest_to_the_largest(table):
    _, [[ax]] = plots.figure()
    plots.lines(table[table["net"] == "a"], "m", "loss", ax=ax)
    of = table[table["net"] == "a"].groupby("m")["loss"]
    (line,), (band,) = ax.lines, ax.collections
    assert line.get_ydata() == pytest.approx(of.mean().to_numpy())
    outline = band.get_paths()[0].vertices
    for m, values in of:
        heights = outline[outline[:, 0] == m, 1]
        assert heights.min() == pytest.approx(values.min())
        assert heights.max() == pytest.approx(values.max())


def test_an_option_of_seaborn_goes_before_by(table):
    _, [[ax]] = plots.figure()
    plots.lines(table, "m", "loss", by="net", style="seed", ax=ax, legend=False)
    assert len(ax.lines) == 6  # a colour for each net, a line style for each seed


def test_ticks_are_exactly_these_and_leave_the_other_axis_alone():
    fig, [[ax]] = plots.figure()
    ax.set(xscale="log", yscale="log", xlim=(0.02, 300), ylim=(0.1, 100))
    other = ax.get_yticks().tolist(), ax.get_yticks(minor=True).tolist()
    plots.ticks(ax.xaxis, [0.05, 1.0, 200])
    fig.canvas.draw()
    assert ax.get_xticks().tolist() == [0.05, 1.0, 200]
    assert [label.get_text() for label in ax.get_xticklabels()] == ["0.05", "1", "200"]
    assert len(ax.get_xticks(minor=True)) == 0
    assert (ax.get_yticks().tolist(), ax.get_yticks(minor=True).tolist()) == other
    assert len(other[1]) > 0
