"""The frozen sharp cases: right encoders pass them, and they come back as they were written."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from conformance import corpus
from conformance.adapters.reference import implementation
from conformance.check import all_checks
from conformance.corpus import Sharp, sharp_cases, write_corpus
from conformance.driver import Driver
from conformance.oracle import Oracle
from conformance.power import Planted
from conformance.search import Effort, search
from conformance.trial import Trial
from reference import FAMILIES, EncoderConfig, ImageItem
from strategies import Case, Weights, paint
from tests.faults import FAULTS

CPU = torch.device("cpu")
DTYPES = (torch.float32, torch.bfloat16, torch.float16, torch.float64)


def plain_case(weights: Weights | None = None) -> Case:
    """One picture."""
    config = EncoderConfig.tiny("step3")
    item = ImageItem(paint("normal", 0, "p", (1, 3, 8, 8)), {"num_patches": [0]})
    return Case(config, weights or Weights.drawn(config, 1, "rotary"), (item,))


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_has_sharp_cases_for_most_checks(family: str) -> None:
    """A check without one is a check that no planted fault has tried."""
    names = {c.name for c in all_checks() if c.applies(family, "items", "cpu")}
    without = {name for name in names if not sharp_cases(name, family, torch.float32)}
    assert len(without) < len(names) / 10, without


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("family", FAMILIES)
def test_the_reference_passes_them(family: str, dtype: torch.dtype) -> None:
    """They show faults, and nothing but faults."""
    trial = Trial(Driver(implementation(), CPU), Oracle(dtype, CPU), family, dtype)
    for check in all_checks():
        if check.applies(family, "items", "cpu") and sharp_cases(check.name, family, dtype):
            found = search(check, trial, Effort(0, shrink=False))
            assert found.case is None, (check.name, found.verdict)


@pytest.mark.parametrize("name", ["rotary: height first", "class tokens: none"])
def test_a_fault_falls_at_its_sharp_case(name: str) -> None:
    """The first case of all is enough."""
    fault = next(f for f in FAULTS if f.name == name)
    family = fault.families[0]
    trial = Trial(Driver(Planted(fault), CPU), Oracle(torch.float32, CPU), family, torch.float32)
    own = [
        c for c in all_checks() if fault.clause in c.clauses and c.applies(family, "items", "cpu")
    ]
    assert any(search(check, trial, Effort(0, shrink=False)).case is not None for check in own)


def test_cases_are_cast_with_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pixels of the model's dtype follow it; others keep theirs, and the case to float32."""
    cast, odd = plain_case(), plain_case()
    odd = odd.replace(items=(ImageItem(odd.items[0].feature.double(), {"num_patches": [0]}),))
    monkeypatch.setattr(corpus, "_corpus", lambda _: (Sharp("x", cast), Sharp("x", odd)))
    assert sharp_cases("x", "step3", torch.float32) == (cast, odd)
    (found,) = sharp_cases("x", "step3", torch.float16)
    assert found.dtype == found.items[0].feature.dtype == torch.float16


def test_what_is_written_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Items, weights and configuration survive."""
    write_corpus([Sharp("x", plain_case())], tmp_path / "corpus" / "step3.safetensors")
    monkeypatch.setattr(corpus.resources, "files", lambda _: tmp_path)
    corpus._corpus.cache_clear()
    try:
        assert sharp_cases("x", "step3", torch.float32) == (plain_case(),)
    finally:
        corpus._corpus.cache_clear()


def test_weights_that_no_regime_draws_are_refused(tmp_path: Path) -> None:
    """They could not be drawn again."""
    weights = plain_case().weights
    name = next(iter(weights))
    other = weights.replace({name: weights[name] + 1}, "one moved")
    with pytest.raises(ValueError, match="no regime"):
        write_corpus([Sharp("x", plain_case(other))], tmp_path / "step3.safetensors")
