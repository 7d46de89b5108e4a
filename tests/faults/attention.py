"""Faults of attention."""

# ruff: noqa: D102 - the methods are the reference's, which says what they do.

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor
from torch.nn import functional as F

from reference.tower import Tower
from tests.faults.fault import PERCEPTION, PRECISE, STEP3, tower_fault

Heads = tuple[Tensor, Tensor, Tensor]


class _OwnScale(Tower):
    """Attention with a factor on its scores."""

    def attend(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        return super().attend(query * self.factor(), key, value)

    def factor(self) -> float:
        """By how much scores are too large."""
        raise NotImplementedError


class ScaleOfThePaddedHead(_OwnScale):
    """The scale is that of a head padded to a power of two."""

    def factor(self) -> float:
        head_dim = self.config.head_dim
        return (head_dim / 2 ** (head_dim - 1).bit_length()) ** 0.5


class ScaleOfTheWidth(_OwnScale):
    """The scale is that of the width."""

    def factor(self) -> float:
        return self.config.heads**-0.5


class NoScale(_OwnScale):
    """Scores are not scaled."""

    def factor(self) -> float:
        return self.config.head_dim**0.5


class ScaledTwice(_OwnScale):
    """Queries are scaled, and scores again."""

    def factor(self) -> float:
        return self.config.head_dim**-0.5


class UniformAttention(Tower):
    """Each token is the mean of all values."""

    def attend(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        return super().attend(torch.zeros_like(query), key, value)


class SoftmaxOverQueries(Tower):
    """Weights add up to one over queries, not over keys."""

    def attend(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        scores = (query * self.config.head_dim**-0.5) @ key.transpose(-2, -1)
        return (scores.softmax(dim=-2) @ value).transpose(1, 2).flatten(2)


class SoftmaxOverHeads(Tower):
    """Weights add up to one over heads, not over keys."""

    def attend(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        scores = (query * self.config.head_dim**-0.5) @ key.transpose(-2, -1)
        return (scores.softmax(dim=1) @ value).transpose(1, 2).flatten(2)


class SoftmaxWithOneMore(Tower):
    """The softmax has a key of score zero and value zero beside the others."""

    def attend(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        key, value = F.pad(key, (0, 0, 1, 0)), F.pad(value, (0, 0, 1, 0))
        return super().attend(query, key, value)


class UnmaskedPadding(Tower):
    """Tokens are padded to a multiple of eight, and the padding takes part."""

    def attend(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        padding = (0, 0, 0, -key.shape[2] % 8)
        return super().attend(query, F.pad(key, padding), F.pad(value, padding))


class Causal(Tower):
    """Each token sees those before it."""

    def attend(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        joined = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        return joined.transpose(1, 2).flatten(2)


class ExceptItself(Tower):
    """No token sees itself."""

    def attend(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        others = ~torch.eye(key.shape[2], dtype=torch.bool, device=key.device)
        joined = F.scaled_dot_product_attention(query, key, value, attn_mask=others)
        return joined.transpose(1, 2).flatten(2)


class HeadsNotJoined(Tower):
    """The result is reshaped while heads still stand before tokens."""

    def attend(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        joined = F.scaled_dot_product_attention(query, key, value)
        return joined.reshape(len(joined), key.shape[2], -1)


class ChannelsBeforeHeads(Tower):
    """Heads are joined channel by channel."""

    def attend(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        joined = F.scaled_dot_product_attention(query, key, value)
        return joined.permute(0, 2, 3, 1).flatten(2)


class NarrowScores(Tower):
    """Scores are rounded to bfloat16 in every model."""

    def attend(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        scores = (query * self.config.head_dim**-0.5) @ key.transpose(-2, -1)
        weights = scores.bfloat16().to(self.wide).softmax(dim=-1).to(value.dtype)
        return (weights @ value).transpose(1, 2).flatten(2)


class QueriesAndKeysSwapped(Tower):
    """Keys come before queries."""

    def split_heads(self, qkv: Tensor) -> Heads:
        query, key, value = super().split_heads(qkv)
        return key, query, value


class KeysAndValuesSwapped(Tower):
    """Values come before keys."""

    def split_heads(self, qkv: Tensor) -> Heads:
        query, key, value = super().split_heads(qkv)
        return query, value, key


class HeadsInterleaved(Tower):
    """Queries, keys and values alternate head by head."""

    def split_heads(self, qkv: Tensor) -> Heads:
        heads = qkv.unflatten(-1, (self.config.heads, 3, self.config.head_dim))
        query, key, value = heads.permute(3, 0, 2, 1, 4)
        return query, key, value


class ChannelsInterleaved(Tower):
    """The heads' channels alternate."""

    def split_heads(self, qkv: Tensor) -> Heads:
        heads = qkv.unflatten(-1, (3, self.config.head_dim, self.config.heads))
        query, key, value = heads.permute(2, 0, 4, 1, 3)
        return query, key, value


class OneKeyHead(Tower):
    """All heads have the first one's keys."""

    def split_heads(self, qkv: Tensor) -> Heads:
        query, key, value = super().split_heads(qkv)
        return query, key[:, :1].expand_as(key), value


class NoOutputBias(Tower):
    """The last product of attention has no bias."""

    def linear(self, name: str, x: Tensor) -> Tensor:
        if name.endswith("out_proj"):
            return F.linear(x, self.weights[f"{name}.weight"])
        return super().linear(name, x)


_scale = partial(tower_fault, kind="attention scale", clause="EN-08")
_heads = partial(tower_fault, kind="heads", clause="EN-08")
_fault = partial(tower_fault, kind="attention", clause="EN-08")
_seen_padded = "bytedance #485, TensorRT-LLM #14926"

FAULTS = (
    _scale(ScaleOfThePaddedHead, "attention: scale of the padded head", source=_seen_padded),
    _scale(ScaleOfTheWidth, "attention: scale of the width"),
    _scale(NoScale, "attention: not scaled"),
    _scale(ScaledTwice, "attention: scaled twice"),
    _heads(QueriesAndKeysSwapped, "attention: queries and keys swapped", families=STEP3),
    # Only what turns tells queries from keys, as far as EN-08 can see.
    tower_fault(
        QueriesAndKeysSwapped,
        "rotary: queries and keys swapped",
        kind="rotary: layout",
        clause="EN-07",
        families=PERCEPTION,
    ),
    _heads(KeysAndValuesSwapped, "attention: keys and values swapped"),
    _heads(HeadsInterleaved, "attention: heads interleaved", source="sglang #9059"),
    _heads(ChannelsInterleaved, "attention: channels of heads interleaved"),
    _heads(HeadsNotJoined, "attention: heads not joined"),
    _heads(ChannelsBeforeHeads, "attention: heads joined by channel"),
    _heads(OneKeyHead, "attention: one head of keys"),
    _fault(UniformAttention, "attention: uniform", source="vllm-ascend #13699"),
    _fault(SoftmaxOverQueries, "attention: softmax over queries"),
    _fault(SoftmaxOverHeads, "attention: softmax over heads"),
    _fault(SoftmaxWithOneMore, "attention: one more in the softmax"),
    _fault(UnmaskedPadding, "attention: padding not masked"),
    _fault(Causal, "attention: causal"),
    _fault(ExceptItself, "attention: a token does not see itself"),
    _fault(NarrowScores, "attention: scores in bfloat16", dtypes=PRECISE),
    tower_fault(
        NoOutputBias, "attention: no output bias", kind="one tensor silently unused", clause="WE-01"
    ),
)
