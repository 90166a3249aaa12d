"""Figures and registered checks of what `probe.landscapes` measured, for one or several tasks."""

import numpy as np
from matplotlib.layout_engine import PlaceHolderLayoutEngine

from ..record import plots

# The claims that rest on each net of `cifar_nets.ORIGINALS`, and the tasks that they are about.
SERVED = {
    "vgg19": {
        "allenzhu2019-fig1-vgg19": ["c10"], "allenzhu2019-fig4-vgg19-cifar100": ["c10", "c100"],
        "allenzhu2019-fig7-vgg19-noise": ["c10", "noise"],
        "allenzhu2019-obs-gradient-beats-curvature": ["c10", "c100", "noise"],
    },
    "resnet32": {
        "allenzhu2019-fig2-resnet32-cifar100": ["c10", "c100"], "allenzhu2019-fig5-resnet32-noise": ["c10", "noise"],
    },
    "resnet110": {
        "allenzhu2019-fig3-resnet110-cifar100": ["c10", "c100"], "allenzhu2019-fig6-resnet110-noise": ["c10", "noise"],
    },
}  # fmt: skip
SERVED["resnet110-basic"] = SERVED["resnet110"]
DECREASE, RHO = 0.01, 0.5  # what "sufficiently" and "not needed" are taken to mean
# Of 3-D axes, which a constrained layout squeezes; the layout "none" is forgotten when a figure is saved.
SOLID = {"subplot_kw": {"projection": "3d", "computed_zorder": False}, "layout": PlaceHolderLayoutEngine(True, False)}
GROUPS = (("rho_1", "D_v1", r"$\rho_1$: curvature, length $\alpha^*$"),
          ("rho_2", "D_v2", r"$\rho_2$: curvature, length $2\alpha^*$"),
          ("rho_r", "D_rand", r"random direction, length $2\alpha^*$"))  # fmt: skip


def ratios(table):
    """{rho_1, rho_2, rho_r, plane, share} (S,): decreases over D_g, and D_g over F; nan where D_g is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        found = {name: table[key] / table["D_g"] for name, key, _ in GROUPS} | {"plane": table["D_2D"] / table["D_g"]}
    found = {name: np.where(table["D_g"] > 0, values, np.nan) for name, values in found.items()}
    return {**found, "share": table["D_g"] / table["F"]}


def measured(table):
    """{name of a check: value} of one task's landscapes; nan for each where there is no table."""
    if table is None:
        return dict.fromkeys(_NAMES, np.nan)
    r, lowest, largest = ratios(table), table["lambda_min"], table["lambda_max"]
    bent = lowest < 0
    return {
        "decrease": r["share"].min(),
        "rho1": r["rho_1"].max(),
        "rho1-one": r["rho_1"].max(),
        "rho1-four": (r["rho_1"] <= RHO).mean(),
        "rho2": r["rho_2"].max(),
        "curvature": (largest[bent] / -lowest[bent]).min() if bent.any() else 1e9,
        "oja": _quality(table, "lambda_lanczos"),
        "oja-fresh": _quality(table, "lambda_lanczos_fresh"),
        "plane": r["plane"].max(),
        "random": r["rho_r"].max(),
        "cosine": table["cosine"].max(),
    }


_NAMES = (
    "decrease", "rho1", "rho1-one", "rho1-four", "rho2", "curvature", "oja", "oja-fresh", "plane", "random", "cosine",
)  # fmt: skip


def _quality(table, reference):
    """The smallest ratio of the curvature of Oja's direction to a reference, where that is considerably negative."""
    counts = table[reference] < -0.01 * table["lambda_max"]
    return (table["lambda_min"][counts] / table[reference][counts]).min() if counts.any() else 1.0


def judge(claim, tables):
    """Pass the registered checks that apply at the profile. tables: {task: its landscapes, or None}.

    A check is named after a quantity of `measured`, of the task before the dash or else of "c10", or after one of
    `over_all`.
    """
    values = {f"{task}-{name}": v for task, table in tables.items() for name, v in measured(table).items()}
    values |= over_all(tables)
    for check in claim.spec.checks:
        if claim.profile in check.profiles:
            name = check.name.removesuffix("-smoke")
            claim.check(check.name, values[name] if name in values else values[f"c10-{name}"])


def over_all(tables):
    """{name of a check of the Observation: value}, over the snapshots of all tasks that have been measured."""
    rows = [(ratios(table), table) for table in tables.values() if table is not None]
    if not rows:
        return dict.fromkeys(("all", "better-at-length", "median", "beyond-theory"), np.nan)
    rho1, rho2, share = (np.concatenate([r[name] for r, _ in rows]) for name in ("rho_1", "rho_2", "share"))
    return {
        "all": ((share >= DECREASE) & (rho1 <= RHO)).mean(),
        "better-at-length": (rho2 < 1).mean(),
        "median": np.median(rho1),
        "beyond-theory": min(table["distance"].min() for _, table in rows),
    }


def note(claim, tables):
    """Metrics per task and snapshot, and the plotted arrays."""
    words = {
        "F": "F", "accuracy": "accuracy on the images of F", "gradient": "|grad F|", "weights": "|W|",
        "q": "radius of the differences", "sigma": "standard deviation of the smoothing, per weight",
        "lambda_max": "lambda_max", "lambda_min": "lambda_min, Oja", "lambda_min_se": "lambda_min, standard error",
        "lambda_lanczos": "lambda_min, Lanczos",
        "lambda_lanczos_fresh": "Rayleigh quotient of Lanczos' direction, fresh samples",
        "lambda_g": "curvature along the gradient", "oja_steps": "Oja steps",
        "alpha": "alpha*", "distance": "|W - W(0)|/|W(0)|",
    }  # fmt: skip
    for task, table in ((task, table) for task, table in tables.items() if table is not None):
        claim.metric(f"{task}: parameters of the net", table["parameters"][0])
        for i, epoch in enumerate(table["epoch"]):
            for key, text in words.items():
                claim.metric(f"{task}, epoch {epoch}: {text}", table[key][i])
        claim.series(**{f"{task} {key}": values for key, values in {**table, **ratios(table)}.items()})


def surfaces(axes, table, title):
    """A surface per snapshot on 3-D axes (made with `SOLID`), the stick at W; none where table is None."""
    axes = axes.flatten()
    for i, ax in enumerate(axes):
        if table is None or i >= len(table["epoch"]):
            ax.set_axis_off()
        else:
            _surface(ax, table, i)
    axes[0].text2D(0.0, 1.12, title, transform=axes[0].transAxes, fontsize=9, fontweight="bold")
    top = 1 - 0.45 / axes[0].figure.get_figheight()  # inches, for the title
    axes[0].figure.subplots_adjust(left=0.02, right=0.96, bottom=0.06, top=top, wspace=0.22, hspace=0.3)


def _surface(ax, table, i):
    x, y = np.meshgrid(table["at_grid"][i], table["at_grid"][i])
    z, value = table["surface"][i], table["F"][i]
    floor = z.min() - 0.25 * (z.max() - z.min())
    ax.plot_surface(x, y, z, cmap="viridis", linewidth=0, alpha=0.9, rstride=1, cstride=1, rasterized=True, zorder=1)
    ax.plot([0, 0], [0, 0], [floor, value], color="blue", lw=2.5, zorder=3)
    ax.plot([0], [0], [value], color="blue", marker="o", ms=4, zorder=3)
    ax.set_zlim(floor, z.max())
    ax.set_title(rf"epoch {table['epoch'][i]}, $\alpha^*$ = {table['alpha'][i]:.2g}", fontsize=8, y=0.98)
    ax.set_xlabel(r"gradient, $x/\alpha^*$", fontsize=6.5, labelpad=-9)
    ax.set_ylabel(r"curvature, $y/\alpha^*$", fontsize=6.5, labelpad=-9)
    ax.tick_params(labelsize=6, pad=-4)
    ax.locator_params(nbins=4)
    ax.view_init(elev=24, azim=-60)


def cuts(axes, table, title):
    """F on the lines through W along the gradient, the negative curvature and a random direction; axes (S,)."""
    for i, ax in enumerate(axes):
        for j, (key, label) in enumerate((("g", "gradient"), ("v", "negative curvature"), ("rand", "random"))):
            ax.plot(table["at"][i], table[f"cut_{key}"][i], label=label, **plots.style(j))
        ax.plot(0, table["F"][i], "o", color="blue")
        ax.set_title(f"epoch {table['epoch'][i]}", fontsize=8.5)
        ax.tick_params(labelsize=7)
    axes[0].set_title(f"\nepoch {table['epoch'][0]}", fontsize=8.5)
    above = {"xycoords": "axes fraction", "textcoords": "offset points", "annotation_clip": False}
    axes[0].annotate(title, (0, 1), (0, 18), fontsize=7, **above).set_in_layout(False)  # as wide as several panels
    axes[0].set_ylabel("$F$, nats")


def bars(axes, table, title):
    """Decreases along other directions over that along the gradient, and D_g/F, against the epoch; axes (2,)."""
    places, r = np.arange(len(table["epoch"])), ratios(table)
    for j, (name, _, label) in enumerate(GROUPS):
        look = {"color": plots.COLOURS[j], "hatch": ("", "///", "...")[j], "edgecolor": "white"}
        axes[0].bar(places + 0.27 * (j - 1), r[name], 0.25, label=label, **look)
    axes[1].plot(places, r["share"], marker="o", **plots.style(0))
    for ax, level, look in ((axes[0], RHO, "--"), (axes[0], 1, ":"), (axes[1], DECREASE, "--")):
        ax.axhline(level, color="k", lw=0.8, ls=look)
    axes[0].set_title(title.replace("; ", "\n"), fontsize=9)
    axes[0].set_ylabel("decrease over $D_g$")
    axes[1].set(xlabel="epoch", yscale="log", ylabel="$D_g/F$", ylim=(DECREASE / 3, 2))
    axes[1].set_xticks(places, [str(epoch) for epoch in table["epoch"]])
