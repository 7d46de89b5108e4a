"""Real checkpoints in miniature: folders of safetensors files, written here and read back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from reference import (
    FAMILIES,
    CheckpointError,
    EncoderConfig,
    ImageItem,
    MissingWeightsError,
    ReferenceEncoder,
    UnknownWeightsError,
    WeightShapeError,
    init_weights,
    load_checkpoint,
)
from strategies import paint

INDEX = "model.safetensors.index.json"
SINGLE = "model.safetensors"

TEXT = {"model.embed_tokens.weight": torch.ones(4, 3), "lm_head.weight": torch.ones(4, 3)}

each_family = pytest.mark.parametrize("family", FAMILIES)


class Folder:
    """A checkpoint to be written: its configuration, its tensors and their shards."""

    def __init__(self, path: Path, family: str = "step3-vl-10b", prefix: str = "") -> None:
        self.path = path
        self.config = EncoderConfig.tiny(family)
        self.weights = init_weights(self.config, 0)
        self.stored = {prefix + name: tensor for name, tensor in self.weights.items()}
        self.write_json("config.json", self.config.to_hf())

    def write_json(self, name: str, content: Any) -> None:
        """Write one JSON file."""
        (self.path / name).write_text(json.dumps(content), encoding="utf-8")

    def write_single(self, **more: Tensor) -> None:
        """Write all tensors, text ones too, to one file."""
        save_file({**self.stored, **TEXT, **more}, self.path / SINGLE)

    def write_shards(self, count: int = 3) -> dict[str, str]:
        """Write the vision tensors to some shards and text tensors to the last; return the map."""
        names = sorted(self.stored)
        placed = {name: f"model-{index % count}.safetensors" for index, name in enumerate(names)}
        placed |= dict.fromkeys(TEXT, "model-text.safetensors")
        everything = {**self.stored, **TEXT}
        for shard in set(placed.values()):
            inside = {name: everything[name] for name, file in placed.items() if file == shard}
            save_file(inside, self.path / shard)
        self.write_index(placed)
        return placed

    def write_index(self, placed: dict[str, Any]) -> None:
        """Write the index."""
        self.write_json(INDEX, {"metadata": {"total_size": 1}, "weight_map": placed})

    def assert_loads(self) -> None:
        """The folder gives the configuration and the vision tensors, bit for bit."""
        config, weights = load_checkpoint(self.path)
        assert config == self.config
        assert weights.keys() == self.weights.keys()
        assert all(torch.equal(weights[name], self.weights[name]) for name in weights)


@each_family
def test_one_file(tmp_path: Path, family: str) -> None:
    """One safetensors file gives its vision tensors and no others."""
    folder = Folder(tmp_path, family)
    folder.write_single()
    folder.assert_loads()


@each_family
def test_index_and_shards(tmp_path: Path, family: str) -> None:
    """Shards that an index names give their vision tensors and no others."""
    folder = Folder(tmp_path, family)
    folder.write_shards()
    folder.assert_loads()


@pytest.mark.parametrize("shards", [False, True], ids=["one file", "shards"])
@each_family
def test_prefixed_names(tmp_path: Path, family: str, shards: bool) -> None:
    """Names with the prefix `model.` load as those without (WE-03)."""
    folder = Folder(tmp_path, family, prefix="model.")
    if shards:
        folder.write_shards()
    else:
        folder.write_single()
    folder.assert_loads()


def test_a_path_as_text(tmp_path: Path) -> None:
    """The folder may be given as text."""
    folder = Folder(tmp_path)
    folder.write_single()
    assert load_checkpoint(str(tmp_path))[0] == folder.config


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64], ids=str)
def test_tensors_come_as_they_are_stored(tmp_path: Path, dtype: torch.dtype) -> None:
    """Tensors keep the dtype that they are stored in."""
    folder = Folder(tmp_path)
    folder.stored = {name: tensor.to(dtype) for name, tensor in folder.stored.items()}
    folder.write_single()
    _, weights = load_checkpoint(tmp_path)
    assert {tensor.dtype for tensor in weights.values()} == {dtype}


@pytest.mark.parametrize("damage", ["absent", "corrupt", "empty"])
def test_text_tensors_are_never_read(tmp_path: Path, damage: str) -> None:
    """A shard of text tensors alone may be absent, corrupt or empty."""
    folder = Folder(tmp_path)
    folder.write_shards()
    shard = tmp_path / "model-text.safetensors"
    shard.unlink()
    if damage != "absent":
        shard.write_bytes(b"" if damage == "empty" else b"not safetensors at all")
    folder.assert_loads()


def test_the_index_goes_before_the_single_file(tmp_path: Path) -> None:
    """With an index beside a single file, the index says where the tensors are."""
    folder = Folder(tmp_path)
    folder.write_shards()
    (tmp_path / SINGLE).write_bytes(b"a leftover")
    folder.assert_loads()


@each_family
def test_an_encoder_of_loaded_weights(tmp_path: Path, family: str) -> None:
    """An encoder of what was loaded gives the bits of one built from memory."""
    folder = Folder(tmp_path, family, prefix="model.")
    folder.write_shards()
    config, weights = load_checkpoint(tmp_path)
    pixels = torch.stack([paint("normal", 0, f"{index}", (3, 8, 8)) for index in range(3)])
    items = [ImageItem(pixels[:2], {"num_patches": [0, 1], "patch_pixel_values": pixels[2:]})]
    results = [
        ReferenceEncoder(*source).get_image_feature(items)
        for source in ((config, weights), (folder.config, folder.weights))
    ]
    assert torch.equal(*results)


def refused(path: Path, error: type[ValueError] = CheckpointError) -> str:
    """The message with which a folder is refused."""
    with pytest.raises(error) as caught:
        load_checkpoint(path)
    assert isinstance(caught.value, ValueError)
    return str(caught.value)


def test_no_configuration(tmp_path: Path) -> None:
    """Without `config.json` the error names it."""
    assert "config.json is missing" in refused(tmp_path)


def test_no_folder(tmp_path: Path) -> None:
    """A folder that there is not is named."""
    assert "nowhere" in refused(tmp_path / "nowhere")


def test_no_tensors(tmp_path: Path) -> None:
    """With neither a single file nor an index the error names both."""
    Folder(tmp_path)
    message = refused(tmp_path)
    assert SINGLE in message
    assert INDEX in message


@pytest.mark.parametrize("file", ["config.json", INDEX])
@pytest.mark.parametrize(
    ("content", "said"),
    [(b"{", "not valid JSON"), (b"\xff\xfe", "not valid JSON"), (b"[]", "a list, not an object")],
    ids=["cut", "not UTF-8", "a list"],
)
def test_damaged_json(tmp_path: Path, file: str, content: bytes, said: str) -> None:
    """A file that is no JSON object is named with what is wrong."""
    folder = Folder(tmp_path)
    folder.write_shards()
    (tmp_path / file).write_bytes(content)
    message = refused(tmp_path)
    assert file in message
    assert said in message


def test_a_foreign_configuration(tmp_path: Path) -> None:
    """A checkpoint of another model is refused by its model type."""
    folder = Folder(tmp_path)
    folder.write_single()
    folder.write_json("config.json", {"model_type": "qwen2_vl"})
    assert "qwen2_vl" in refused(tmp_path, ValueError)


def test_an_index_without_a_map(tmp_path: Path) -> None:
    """An index without a weight map is named."""
    folder = Folder(tmp_path)
    folder.write_json(INDEX, {"metadata": {}})
    assert f"{INDEX} has no weight_map" in refused(tmp_path)


@pytest.mark.parametrize(
    "shard", ["../outside.safetensors", "/tmp/x.safetensors", "sub/x.safetensors", "./x"]
)
def test_an_index_that_leaves_the_folder(tmp_path: Path, shard: str) -> None:
    """A shard that is no file beside the index is refused by name, even one of text tensors."""
    folder = Folder(tmp_path)
    placed = folder.write_shards()
    for name in ("lm_head.weight", "vit_large_projector.weight"):
        folder.write_index({**placed, name: shard})
        assert repr(shard) in refused(tmp_path)


@pytest.mark.parametrize(
    "shard",
    [
        "..",
        ".",
        "",
    ],
)
def test_an_index_that_names_a_folder(tmp_path: Path, shard: str) -> None:
    """A shard that is a folder is refused."""
    folder = Folder(tmp_path)
    placed = folder.write_shards()
    folder.write_index({**placed, "vit_large_projector.weight": shard})
    refused(tmp_path)


@pytest.mark.parametrize("shard", [None, 3, ["a"]], ids=repr)
def test_an_index_that_names_no_text(tmp_path: Path, shard: Any) -> None:
    """A shard that is no text is refused."""
    folder = Folder(tmp_path)
    placed = folder.write_shards()
    folder.write_index({**placed, "vit_large_projector.weight": shard})
    refused(tmp_path)


def test_a_shard_is_missing(tmp_path: Path) -> None:
    """A shard of vision tensors that is not there is named."""
    folder = Folder(tmp_path)
    folder.write_shards()
    (tmp_path / "model-1.safetensors").unlink()
    assert "model-1.safetensors is missing" in refused(tmp_path)


@pytest.mark.parametrize("content", [b"", b"not safetensors at all"], ids=["empty", "corrupt"])
def test_a_shard_is_damaged(tmp_path: Path, content: bytes) -> None:
    """A shard of vision tensors that cannot be read is named."""
    folder = Folder(tmp_path)
    folder.write_shards()
    (tmp_path / "model-1.safetensors").write_bytes(content)
    assert "model-1.safetensors is not a readable" in refused(tmp_path)


def test_a_shard_is_cut(tmp_path: Path) -> None:
    """A shard of which the end is missing is named."""
    folder = Folder(tmp_path)
    folder.write_single()
    whole = (tmp_path / SINGLE).read_bytes()
    (tmp_path / SINGLE).write_bytes(whole[:-8])
    assert SINGLE in refused(tmp_path)


def test_a_tensor_is_not_where_the_index_says(tmp_path: Path) -> None:
    """A tensor that its shard lacks is named with the shard."""
    folder = Folder(tmp_path)
    placed = folder.write_shards()
    name = "vit_large_projector.weight"
    other = next(file for file in set(placed.values()) if file not in (placed[name], "model-text"))
    folder.write_index({**placed, name: other})
    message = refused(tmp_path)
    assert other in message
    assert repr(name) in message


def test_a_tensor_is_missing(tmp_path: Path) -> None:
    """A vision tensor that no file holds is named (WE-02)."""
    folder = Folder(tmp_path)
    del folder.stored["vision_model.conv1.weight"]
    folder.write_single()
    assert "vision_model.conv1.weight" in refused(tmp_path, MissingWeightsError)


@pytest.mark.parametrize("prefix", ["", "model."])
def test_an_unknown_vision_tensor(tmp_path: Path, prefix: str) -> None:
    """A vision tensor that the configuration has no place for is named (WE-02)."""
    folder = Folder(tmp_path)
    folder.stored[f"{prefix}vision_model.ln_post.weight"] = torch.ones(16)
    folder.write_single()
    assert "vision_model.ln_post.weight" in refused(tmp_path, UnknownWeightsError)


def test_a_tensor_of_the_wrong_shape(tmp_path: Path) -> None:
    """A vision tensor of the wrong shape is named with both shapes (WE-02)."""
    folder = Folder(tmp_path)
    folder.stored["vision_model.positional_embedding"] = torch.ones(17, 16)
    folder.write_single()
    message = refused(tmp_path, WeightShapeError)
    assert "vision_model.positional_embedding (17, 16) (expected (16, 16))" in message
