"""A peer process in the environment of neural-tangents.

Does its task on each line read, and answers with CPU seconds.

    python jax_peer.py TASK FOLDER ARGUMENTS...

Reads FOLDER/inputs.npz, and leaves its result in FOLDER/result.npy after the first time.
"""

import os
import sys
import time

os.environ.update(
    JAX_PLATFORMS="cpu",
    XLA_FLAGS="--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
    TF_CPP_MIN_LOG_LEVEL="3",
)

import jax
import jax.numpy as jnp
import neural_tangents as nt
import numpy as np
from neural_tangents import stax


def relu_gram(inputs):
    """The NTK of a two-layer ReLU net with the first layer trained.

    That of both, less that of the last.
    """
    _, _, kernel = stax.serial(stax.Dense(1, W_std=1.0), stax.Relu())
    return jax.jit(lambda x: kernel(x, x, "ntk")), jnp.asarray(inputs["x"]) * inputs["x"].shape[
        1
    ] ** 0.5


def leaky_ntk(inputs):
    """L trained layers with leaky units of unit gain; no layer after the last unit."""
    alpha, depth = float(inputs["alpha"]), int(inputs["depth"])
    c = (1 + alpha**2) ** -0.5
    _, _, kernel = stax.serial(*[stax.Dense(1, W_std=2**0.5), stax.ABRelu(alpha * c, c)] * depth)
    return jax.jit(lambda x: kernel(x, x, "ntk")), jnp.asarray(inputs["x"]) * inputs["x"].shape[
        1
    ] ** 0.5


def empirical_ntk(inputs):
    """Structured derivatives of a net of given weights; products are written h W, as these need."""
    B = jnp.asarray(inputs["B"])
    weights = [jnp.asarray(W) for W in inputs["W"]]

    def net(weights, h):
        for W in weights:
            h = jax.nn.relu(h @ W)
        return h @ B

    implementation = nt.NtkImplementation.STRUCTURED_DERIVATIVES
    kernel = nt.empirical_ntk_fn(net, vmap_axes=0, trace_axes=(), implementation=implementation)
    # Weights that the function closes over are constants to jit, which then takes a hundred times
    # as long.
    return jax.jit(lambda given: kernel(given[0], None, given[1])), (
        jnp.asarray(inputs["h0"]),
        weights,
    )


def main(task, folder):
    inputs = np.load(f"{folder}/inputs.npz")
    jax.config.update("jax_enable_x64", inputs[inputs.files[0]].dtype == np.float64)
    work, argument = {f.__name__: f for f in (relu_gram, leaky_ntk, empirical_ntk)}[task](inputs)
    first = True
    for _ in sys.stdin:
        start = time.process_time()
        result = jax.block_until_ready(work(argument))
        seconds = time.process_time() - start
        if first:
            np.save(f"{folder}/result.npy", np.asarray(result))
            first = False
        print(seconds, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
