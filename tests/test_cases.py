"""Cases as values and as files."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from safetensors import safe_open
from torch import Tensor

from reference import EncoderConfig, ImageItem
from strategies import (
    FAULTS,
    Case,
    Image,
    Placement,
    Weights,
    brief,
    cases,
    list_forms,
    load_case,
    malformed,
    numpy_forms,
    paint,
    plain_item,
    save_case,
    tensor_forms,
)
from strategies.encoding import decode, encode

CONFIG = EncoderConfig.tiny("step3-vl-10b")

few = settings(
    max_examples=20,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)


def pixels(count: int, label: str = "") -> Tensor:
    """Pictures, `(count, 3, 8, 8)`."""
    return torch.stack([paint("normal", 1, f"{label}{index}", (3, 8, 8)) for index in range(count)])


def inferred(tensor: Tensor) -> Tensor:
    """The same values from inference mode."""
    with torch.inference_mode():
        return tensor.clone()


def a_case(feature: Tensor | None = None, **data: Any) -> Case:
    """A case of one item."""
    item = ImageItem(pixels(1) if feature is None else feature, {"num_patches": [0], **data})
    return Case(CONFIG, Weights.drawn(CONFIG, 0), (item,))


def there_and_back(case: Case, folder: Path, **notes: Any) -> Case:
    """The case as it comes out of a file."""
    save_case(case, folder / "a.safetensors", notes)
    found, kept = load_case(folder / "a.safetensors")
    assert kept == notes
    return found


def assert_same(one: Any, other: Any) -> None:
    """Equal in type, value and, for tensors, memory."""
    assert type(one) is type(other)
    if isinstance(one, Tensor):
        assert (one.dtype, one.shape, one.stride()) == (other.dtype, other.shape, other.stride())
        assert one.storage_offset() == other.storage_offset()
        assert one.requires_grad == other.requires_grad
        assert one.is_inference() == other.is_inference()
        assert torch.equal(one.nan_to_num(0.5), other.nan_to_num(0.5))
        assert torch.equal(one.isnan(), other.isnan())
    elif isinstance(one, np.ndarray):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
    elif isinstance(one, (list, tuple)):
        for mine, its in zip(one, other, strict=True):
            assert_same(mine, its)
    elif isinstance(one, dict):
        assert list(one) == list(other)
        for key in one:
            assert_same(one[key], other[key])
    else:
        assert one == other or (one != one and other != other)


VALUES: dict[str, Any] = {
    "None": None,
    "an int": 3,
    "a bool": True,
    "a string": "zwölf",
    "a float": 0.1,
    "NaN": math.nan,
    "infinity": -math.inf,
    "nested": [(1, [None, {"a": (2.5, torch.ones(2))}]), {}],
    "empty": [[], (), {}],
    "a NumPy integer": np.int16(-3),
    "a NumPy float": np.float32(0.1),
    "a NumPy NaN": np.float64("nan"),
    "a NumPy bool": np.bool_(True),
    "a NumPy array": np.arange(6, dtype=np.uint8).reshape(2, 3),
    "a NumPy column": np.arange(6.0).reshape(3, 2)[:, 1],
    "a 0-d tensor": torch.tensor(4, dtype=torch.uint8),
    "a bool tensor": torch.tensor([True, False]),
    "zero rows": torch.zeros(0, 3, 4, 4, dtype=torch.bfloat16),
    "an empty float tensor": torch.tensor([]),
    "channels last": pixels(2).contiguous(memory_format=torch.channels_last),
    "a window": torch.arange(60.0).reshape(3, 4, 5)[1:, ::2, 1:-1],
    "expanded": torch.arange(3.0).reshape(3, 1).expand(3, 4),
    "transposed": torch.arange(6).reshape(2, 3).T,
    "requires grad": torch.ones(2, 2).requires_grad_(),
    "from inference mode": inferred(torch.ones(2)),
    "a window from inference mode": inferred(torch.arange(9.0))[2:8:2],
    "a tensor with NaN": torch.tensor([1.0, math.nan, math.inf]),
    "float16": torch.tensor([0.1, 65504.0]).half(),
    "two of one storage": list(torch.arange(6.0).chunk(2)),
}


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
def test_every_kind_of_value_survives_a_file(tmp_path: Path, value: Any) -> None:
    """Values of every kind come out of a file as they went in, and the case is equal."""
    case = a_case(extra=value)
    found = there_and_back(case, tmp_path)
    assert_same(found.items[0].model_specific_data["extra"], value)
    assert found.digest == case.digest
    assert found == case


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
def test_every_kind_of_value_survives_encoding(value: Any) -> None:
    """Encoding and decoding give a value as it was, in memory of its own."""
    assert_same(decode(encode(value)), value)
    assert encode(decode(encode(value))).digest() == encode(value).digest()


def test_decoded_tensors_are_new_each_time() -> None:
    """Writing to a decoded tensor changes neither the encoding nor the original."""
    original = torch.ones(3)
    encoded = encode(original)
    decode(encoded).zero_()
    assert torch.equal(decode(encoded), original)
    assert torch.equal(original, torch.ones(3))


def test_what_cannot_be_kept_is_named() -> None:
    """A value of an unknown kind is refused when the case is first hashed."""
    with pytest.raises(TypeError, match="set"):
        assert a_case(extra={1, 2}).digest


@few
@given(
    cases(
        count_forms=list_forms() | numpy_forms() | tensor_forms(),
        grouping=["bundled", "split", "mixed"],
        layouts=["contiguous", "sliced", "channels-last", "expanded"],
        empty_patches=["absent", "none", "zero-rows", "empty-list"],
        profiles=["normal", "nan", "inf"],
        unknown_keys=True,
        dtype=torch.bfloat16,
        regimes=["balanced", "large"],
        placement=Placement(feature="cpu", counts="model"),
    )
)
def test_drawn_cases_survive_a_file(tmp_path_factory: pytest.TempPathFactory, case: Case) -> None:
    """A drawn case comes out of a file equal, in every field."""
    found = there_and_back(case, tmp_path_factory.mktemp("case"))
    assert found == case
    assert found.config == case.config
    assert found.weights == case.weights
    assert found.weights.label == case.weights.label
    assert (found.dtype, found.placement) == (case.dtype, case.placement)
    assert repr(found) == repr(case)
    for one, other in zip(found.items, case.items, strict=True):
        assert_same(one.feature, other.feature)
        assert_same(one.model_specific_data, other.model_specific_data)


@few
@given(malformed(faults=list(FAULTS)))
def test_malformed_cases_survive_a_file(
    tmp_path_factory: pytest.TempPathFactory, case: Case
) -> None:
    """A malformed case comes out of a file equal."""
    assert there_and_back(case, tmp_path_factory.mktemp("case"), check="any") == case


def test_a_case_without_items_survives_a_file(tmp_path: Path) -> None:
    """A case of no items comes out of a file equal."""
    case = a_case().replace(items=())
    assert there_and_back(case, tmp_path) == case


def test_notes_are_kept(tmp_path: Path) -> None:
    """Notes come out of a file as they went in, and do not count for equality."""
    notes = {"check": "en_01", "units": 12.5, "more": [None, True, {"a": "ü"}]}
    assert there_and_back(a_case(), tmp_path, **notes) == a_case()


def test_loaded_tensors_are_aligned(tmp_path: Path) -> None:
    """Loaded weights lie aligned, so that kernels round as for tensors made in memory."""
    found = there_and_back(a_case(), tmp_path)
    assert {tensor.data_ptr() % 64 for tensor in found.weights.values()} == {0}


def test_a_file_is_plain_safetensors(tmp_path: Path) -> None:
    """Any tool that reads safetensors finds the weights under their published names."""
    case = a_case()
    save_case(case, tmp_path / "a.safetensors")
    with safe_open(tmp_path / "a.safetensors", framework="pt") as opened:
        for name, tensor in case.weights.items():
            assert torch.equal(opened.get_tensor(f"weights/{name}"), tensor)


def nudged(item: ImageItem) -> ImageItem:
    """The same item with one pixel moved by the least there is."""
    feature = item.feature.clone()
    feature[0, 0, 0, 0] = math.nextafter(float(feature[0, 0, 0, 0]), math.inf) + 2.0**-20
    return ImageItem(feature, item.model_specific_data)


CASE = a_case()
OTHERS = {
    "config": CASE.replace(config=EncoderConfig.tiny("step3p7")),
    "weights": CASE.replace(weights=Weights.drawn(CONFIG, 1)),
    "dtype": CASE.replace(dtype=torch.float16),
    "placement": CASE.replace(placement=Placement(counts="model")),
    "no items": CASE.replace(items=()),
    "an item twice": CASE.replace(items=CASE.items * 2),
    "one pixel": CASE.replace(items=(nudged(CASE.items[0]),)),
    "form of counts": a_case(num_patches=(0,)),
    "counts as a tensor": a_case(num_patches=torch.tensor([0])),
    "another key": a_case(extra=None),
    "strides": a_case(pixels(1).transpose(2, 3).contiguous().transpose(2, 3)),
    "grad": a_case(pixels(1).requires_grad_()),
    "inference mode": a_case(inferred(pixels(1))),
}


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
def test_any_change_makes_another_case(other: Case) -> None:
    """Cases that differ in anything are unequal."""
    assert other != CASE
    assert other.digest != CASE.digest


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (torch.zeros(2), torch.zeros(2, dtype=torch.int32)),
        (torch.tensor([1], dtype=torch.int8), torch.tensor([1], dtype=torch.uint8)),
        (torch.tensor([1.0]).half(), torch.tensor([15360], dtype=torch.int16)),
        (torch.tensor([1.0]).bfloat16(), torch.tensor([1.875]).half()),
        (np.zeros(2, dtype=np.float32), np.zeros(2, dtype=np.int32)),
    ],
    ids=["float or int", "signed or not", "half or int", "bfloat16 or half", "NumPy"],
)
def test_equal_bytes_of_another_dtype_make_another_case(one: Any, other: Any) -> None:
    """Tensors of one shape and the same bytes, in two dtypes, make unequal cases."""
    assert a_case(extra=one) != a_case(extra=other)


def test_equal_content_makes_equal_cases() -> None:
    """Cases made apart of the same content are equal, hash alike, and are unlike other values."""
    assert a_case() == a_case()
    assert len({a_case(), a_case(), a_case(extra=1)}) == 2
    assert a_case() != "a case"


def test_weights_are_equal_by_content() -> None:
    """Weights made apart are equal whatever their order and label, and differ by any value."""
    one = Weights.drawn(CONFIG, 0)
    again = Weights(dict(reversed(list(one.items()))), "another label")
    assert one == again
    assert hash(one) == hash(again)
    name = next(iter(one))
    changed = one.replace({name: one[name] + 1}, "changed")
    assert changed != one
    assert changed.label == "balanced, seed 0, changed"
    assert Weights({}) != one
    assert one != dict(one)


def test_weights_tell_names_and_shapes_apart() -> None:
    """The same values under another name, or in another shape, are other weights."""
    values = torch.arange(4.0)
    assert Weights({"a": values}) != Weights({"b": values})
    assert Weights({"a": values}) != Weights({"a": values.reshape(2, 2)})
    assert Weights({"a": values}) == Weights({"a": values.clone()})


def test_weights_tell_dtypes_apart() -> None:
    """The same bytes in another dtype are other weights."""
    assert Weights({"a": torch.zeros(2)}) != Weights({"a": torch.zeros(2, dtype=torch.int32)})


def test_weights_are_a_mapping() -> None:
    """Weights have the names and tensors that they were made of, and cannot be written to."""
    weights = Weights.drawn(CONFIG, 0)
    assert len(weights) == len(list(weights)) == len(dict(weights))
    assert "vision_model.conv1.weight" in weights
    assert repr(weights) == "Weights(balanced, seed 0)"
    with pytest.raises(TypeError):
        weights["a"] = torch.zeros(1)  # type: ignore[index]


def test_images_of_a_case() -> None:
    """A case tells its images by item, with their patches; the plain form holds the same."""
    patches = pixels(3, "patch")
    items = (
        ImageItem(
            pixels(2), {"num_patches": torch.tensor([[1], [2]]), "patch_pixel_values": patches}
        ),
        ImageItem(pixels(1), {"num_patches": 0, "patch_pixel_values": None}),
    )
    case = a_case().replace(items=items)
    assert [[image.count for image in group] for group in case.groups] == [[1, 2], [0]]
    assert [len(image.pictures) for image in case.images] == [2, 3, 1]
    assert torch.equal(case.images[1].pictures[0], patches[1])
    assert torch.equal(case.images[1].pictures[-1], items[0].feature[1])
    plain = case.plain
    assert [item.model_specific_data["num_patches"] for item in plain.items] == [[1, 2], [0]]
    assert torch.equal(plain.items[0].model_specific_data["patch_pixel_values"], patches)
    assert "patch_pixel_values" not in plain.items[1].model_specific_data
    assert plain.plain == plain


def test_regrouping_drops_empty_groups() -> None:
    """Images may be grouped anew; a group of none makes no item."""
    image = Image(pixels(1)[0], pixels(2, "patch"))
    case = a_case().regrouped([[image], [], [image, image]])
    assert [item.model_specific_data["num_patches"] for item in case.items] == [[2], [2, 2]]
    assert plain_item([image]).feature.shape == (1, 3, 8, 8)


def test_a_case_on_one_line() -> None:
    """A case reads as one line with family, counts and shapes, and no pixel."""
    text = repr(a_case(patch_pixel_values=pixels(2)))
    assert "\n" not in text
    assert len(text) < 400
    for part in ("step3-vl-10b", "balanced, seed 0", "float32(2, 3, 8, 8)", "[0]"):
        assert part in text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (torch.tensor([1, 2]), "int64([1, 2])"),
        (torch.zeros(2, 3), "float32(2, 3)"),
        ([torch.tensor(1), 2], "[int64(1), 2]"),
        ((1, None), "(1, None)"),
        (np.int64(3), "np.int64(3)"),
    ],
    ids=repr,
)
def test_brief(value: Any, text: str) -> None:
    """Values read briefly: counts by value, other tensors by dtype and shape."""
    assert brief(value) == text


def test_a_case_is_saved_as_the_same_bytes(tmp_path: Path) -> None:
    """Its notes, too, stand in one order."""
    case = a_case()
    notes = {str(number): number for number in range(20)}
    contents = set()
    for number in range(3):
        save_case(case, tmp_path / f"{number}.safetensors", notes)
        contents.add((tmp_path / f"{number}.safetensors").read_bytes())
    assert len(contents) == 1
