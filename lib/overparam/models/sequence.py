"""The LSTM and the vision transformer of Guo et al. 2024, Tables 8 and 5."""

import torch
from torch import nn

from .modules import Drawn, LeakyUnit


class LeakyLSTM(nn.Module):
    """An LSTM on word numbers whose head has a leaky unit of slope `alpha`.

    Inputs (n, t) of word numbers below `vocab`, outputs (n,): logits of the positive class.
    Embedding, `layers` layers of LSTM, dropout of what the last one holds after the last word,
    Linear(hidden, head), leaky unit, Linear(head, 1), with biases. Embedding N(0, 1), the LSTM
    uniform in +-1/sqrt(hidden), as torch has them. The defaults are the paper's.
    Source: Guo et al. 2024, Table 8.
    """

    def __init__(
        self,
        alpha,
        seed,
        *,
        vocab=1000,
        dim=64,
        hidden=256,
        layers=2,
        dropout=0.3,
        head=4096,
        fan="in",
    ):
        super().__init__()
        draw = Drawn(seed, bias=True)
        self.embedding = draw.normal(vocab, dim)
        self.lstm = nn.LSTM(dim, hidden, layers, batch_first=True, dtype=torch.float64)
        with torch.no_grad():
            for p in self.lstm.parameters():
                p.copy_(draw.uniform(*p.shape) / hidden**0.5)
        self.dropout = nn.Dropout(dropout)
        self.head = draw.head(hidden, head, 1, alpha, fan)

    def forward(self, words):
        states, _ = self.lstm(nn.functional.embedding(words, self.embedding))
        return self.head(self.dropout(states[:, -1]))[:, 0]


class LeakyViT(nn.Module):
    """A vision transformer with leaky units of slope `alpha` in its head.

    With `leaky_encoder` the MLPs of its encoder have them as well, instead of GELU.
    Inputs (n, 1, size, size), or flattened, cut into patches of `patch` x `patch`; outputs (n,
    classes): logits. Learned positions, `layers` pre-norm blocks of attention and an MLP, the mean
    over the patches, and a head of `head` units with biases. The defaults are the paper's, except
    for the embedding of patches, which it does not mention. Weights of the encoder N(0, 1/fan in),
    positions N(0, 0.02^2).
    Source: Guo et al. 2024, Table 5.
    """

    def __init__(
        self,
        alpha,
        seed,
        *,
        size=28,
        patch=4,
        dim=64,
        layers=6,
        heads=8,
        head_dim=64,
        mlp=8192,
        head=8192,
        classes=10,
        fan="in",
        leaky_encoder=False,
    ):
        super().__init__()
        draw = Drawn(seed, bias=True)
        self.patch = patch
        self.cuts = size // patch  # patches along a side
        self.embedding = draw.linear(patch**2, dim, 1 / patch)
        self.positions = draw.normal(self.cuts**2, dim, std=0.02)
        unit = LeakyUnit(alpha) if leaky_encoder else nn.GELU()
        blocks = []
        for _ in range(layers):
            up, down = draw.linear(dim, mlp, dim**-0.5), draw.linear(mlp, dim, mlp**-0.5)
            attention = _Attention(draw, dim, heads, head_dim)
            blocks += [_Residual(dim, attention), _Residual(dim, nn.Sequential(up, unit, down))]
        self.blocks = nn.Sequential(*blocks, nn.LayerNorm(dim, dtype=torch.float64))
        self.head = draw.head(dim, head, classes, alpha, fan)

    def forward(self, x):
        n, patch, cuts = len(x), self.patch, self.cuts
        cut = x.reshape(n, cuts, patch, cuts, patch).transpose(2, 3)
        tokens = self.embedding(cut.reshape(n, -1, patch**2)) + self.positions
        return self.head(self.blocks(tokens).mean(1))


class _Residual(nn.Module):
    """x + f(LayerNorm(x))."""

    def __init__(self, dim, f):
        super().__init__()
        self.norm = nn.LayerNorm(dim, dtype=torch.float64)
        self.f = f

    def forward(self, x):
        return x + self.f(self.norm(x))


class _Attention(nn.Module):
    """Multi-head self-attention on tokens (n, t, dim)."""

    def __init__(self, draw, dim, heads, head_dim):
        super().__init__()
        self.heads = heads
        inner = heads * head_dim
        self.qkv = draw.linear(dim, 3 * inner, dim**-0.5, bias=False)
        self.out = draw.linear(inner, dim, inner**-0.5)

    def forward(self, x):
        n, t, _ = x.shape
        q, k, v = self.qkv(x).reshape(n, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        weights = torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, -1)
        return self.out((weights @ v).transpose(1, 2).reshape(n, t, -1))
