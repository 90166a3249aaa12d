"""The LSTM of Guo et al. 2024, Table 8."""

import torch
from torch import nn

from .modules import Drawn


class LeakyLSTM(nn.Module):
    """An LSTM on word numbers whose head has a leaky unit of slope `alpha`.

    Inputs (n, t) of word numbers below `vocab`, outputs (n,): logits of the positive class. Embedding, `layers` layers
    of LSTM, dropout of what the last one holds after the last word, Linear(hidden, head), leaky unit, Linear(head, 1),
    with biases. Embedding N(0, 1), the LSTM uniform in +-1/sqrt(hidden), as torch has them. The defaults are the
    paper's. Source: Guo et al. 2024, Table 8.
    """

    def __init__(self, alpha, seed, *, vocab=1000, dim=64, hidden=256, layers=2, dropout=0.3, head=4096, fan="in"):
        super().__init__()
        draw = Drawn(seed, bias=True)
        self.embedding = draw.normal(vocab, dim)
        self.lstm = nn.LSTM(dim, hidden, layers, batch_first=True, dtype=torch.float64)
        with torch.no_grad():
            for p in self.lstm.parameters():
                p.copy_((2 * torch.rand(p.shape, generator=draw.generator, dtype=torch.float64) - 1) / hidden**0.5)
        self.dropout = nn.Dropout(dropout)
        self.head = draw.head(hidden, head, 1, alpha, fan)

    def forward(self, words):
        states, _ = self.lstm(nn.functional.embedding(words, self.embedding))
        return self.head(self.dropout(states[:, -1]))[:, 0]
