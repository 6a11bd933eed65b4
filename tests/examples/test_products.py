"""The demo on a small ensemble: a forecast, its products, its archive, and nothing lost."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

DEMO = Path(__file__).resolve().parents[2] / "examples/12_products/demo.py"


@pytest.mark.timeout(400)
def test_a_small_ensemble_has_all_its_products(tmp_path: Path) -> None:
    out = tmp_path / "out"
    options = ["--members", "2", "--days", "1", "--truncation", "42", "--workers", "2", "--out", str(out)]
    environment = {"JUNCTURA_CACHE": str(tmp_path / "cache"), **os.environ}
    done = subprocess.run(
        [sys.executable, str(DEMO), *options], capture_output=True, text=True, check=False, env=environment
    )
    assert done.returncode == 0, done.stdout + done.stderr
    summary = json.loads((out / "summary.json").read_text())
    assert summary["fields"] == summary["archived"] == 2 * 6 * 9
    assert (summary["lost"], summary["failed"], summary["decodes_per_input_max"]) == (0, [], 1)
    products = list((out / "products").rglob("*.provenance.json"))
    assert len(products) == summary["products"] > 100
    assert summary["first_product_at_fraction"] >= 0
    with Image.open(out / "products.png") as picture:
        assert picture.width > 3000 and picture.height > 2000
