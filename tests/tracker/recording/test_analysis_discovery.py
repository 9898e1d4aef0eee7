"""Analyses are found without being imported, and say by their signature what they need."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tracker.errors import PluginError
from tracker.plugins.discovery import PluginModule
from tracker.plugins.parameters import REQUIRED
from tracker.recording.declaration import hash_sources, load_declaration
from tracker.recording.registry import discover_analyses

PLAIN = '''
"""Is it plain?

A second paragraph.
"""
from tracker.queries.performance import PerformanceMatrix
from tracker.recording.finding import CPU, Device, Report, analysis

@analysis
def analyze({signature}) -> Report:
    raise NotImplementedError
'''


def plain(signature: str) -> str:
    return PLAIN.format(signature=signature)


class TestDiscovery:
    def test_ours_are_found_and_what_they_share_is_not(self) -> None:
        result = discover_analyses()
        assert result["prompt-correlation"].description == "Test whether prompts agree more than chance allows."
        assert not {"figures", "numerics"} & set(result)

    def test_a_package_brings_each_of_its_marked_modules_and_nothing_is_imported(self, install) -> None:
        install(
            "outside",
            {
                "first_one": plain("scores: PerformanceMatrix"),
                "second": "from tracker.recording import finding\n@finding.analysis\ndef f(): ...\n",
                "third": "from tracker.recording.finding import analysis as question\n@question\ndef f(): ...\n",
                "not_one": "def analysis(f): return f\n",
                "_private": plain("scores: PerformanceMatrix"),
            },
        )
        result = discover_analyses()
        assert {name for name, item in result.items() if item.module.startswith("outside")} == {
            "first-one",
            "second",
            "third",
        }
        assert result["first-one"].description == "Is it plain?"
        assert result["first-one"].distribution == "outside-plugin 1.2"
        assert not [name for name in sys.modules if name.startswith("outside")]

    def test_an_entry_may_name_one_module_even_inside_a_package(self, install) -> None:
        install("alone", plain("scores: PerformanceMatrix"))
        install("nested", {"deep": plain("scores: PerformanceMatrix"), "other": plain("x: int")}, module="nested.deep")
        result = discover_analyses()
        assert result["alone"].module == "alone"
        assert result["deep"].module == "nested.deep"
        assert "other" not in result
        assert "nested" not in sys.modules

    def test_a_duplicate_name_is_qualified_by_its_entry_point(self, install) -> None:
        install("outside", {"prompt_correlation": plain("scores: PerformanceMatrix")})
        result = discover_analyses()
        assert result["prompt-correlation"].module == "analyses.prompt_correlation"
        assert result["outside:prompt-correlation"].module == "outside.prompt_correlation"
        assert load_declaration("outside:prompt-correlation").name == "outside:prompt-correlation"


class TestDeclaration:
    def test_keyword_parameters_become_options(self, toys: None) -> None:
        declaration = load_declaration("toy")
        assert list(declaration.inputs) == ["scores"]
        text = {p.name: (p.type, p.choices, p.many, p.default, p.help) for p in declaration.parameters}
        assert text == {
            "n_blocks": (int, (), False, 8, "blocks of draws"),
            "method": (str, ("plain", "fancy"), False, "plain", "how"),
            "quantiles": (float, (), True, (0.25, 0.75), ""),
            "threshold": (float, (), False, None, ""),
            "verbose": (bool, (), False, False, ""),
            "label": (str, (), False, "", ""),
            "seed": (int, (), False, 0, ""),
        }
        assert declaration.help.startswith("How hard are the prompts?")

    def test_a_parameter_without_a_default_is_required(self, install) -> None:
        install("outside", {"needy": plain("scores: PerformanceMatrix, *, k: int | None")})
        [parameter] = load_declaration("needy").parameters
        assert (parameter.type, parameter.default) == (int, REQUIRED)

    def test_a_device_is_no_parameter(self, install) -> None:
        signature = "scores: PerformanceMatrix, *, k: int = 1, device: Device = CPU"
        install("outside", {"fast": plain(signature), "slow": plain("scores: PerformanceMatrix, *, k: int = 1")})
        fast, slow = load_declaration("fast"), load_declaration("slow")
        assert [parameter.name for parameter in fast.parameters] == ["k"]
        assert (fast.has_device, slow.has_device) == (True, False)

    def test_the_version_names_package_and_source(self, install) -> None:
        install("outside", {"one": plain("scores: PerformanceMatrix"), "two": plain("scores:  PerformanceMatrix")})
        item, two = (load_declaration(name).code_version for name in ("one", "two"))
        assert item.startswith("outside-plugin 1.2, one.py ")
        assert item.split()[-1] != two.split()[-1]


class TestErrors:
    @pytest.mark.parametrize(
        ("source", "words"),
        [
            ("@analysis\ndef f(:\n", r"its source is not Python in line 2"),
            ("import no_such_module\n" + plain("x: int"), r"ModuleNotFoundError: No module named 'no_such_module'"),
            ("raise RuntimeError('boom')\n" + plain("x: int"), r"importing bad.broken fails: RuntimeError: boom"),
            (plain("x: int"), r"the input x is a int, which has no load and digest"),
            (plain("scores"), r"scores has no annotation"),
            (plain(""), r"it has no input"),
            (plain("scores: PerformanceMatrix, **more"), r"it takes \*more"),
            (plain("scores: PerformanceMatrix, *, x: dict[str, int] = {}"), r"the parameter x is a dict\[str, int\]"),
            (plain("scores: PerformanceMatrix, *, x: int | str = 1"), r"the parameter x is a int \| str"),
            (plain("scores: 'Unknown'"), r"an annotation cannot be resolved \(name 'Unknown' is not defined\)"),
            (plain("scores: PerformanceMatrix, *, on: Device"), r"its Device is called on; call it device"),
            (plain("scores: PerformanceMatrix") + "@analysis\ndef g(): ...\n", r"marks 2 functions"),
        ],
        ids=lambda value: None if "\n" in value else value[:30],
    )
    def test_a_broken_module_shows_its_problem_and_costs_only_itself(self, install, source: str, words: str) -> None:
        install("bad", {"broken": source, "sound": plain("scores: PerformanceMatrix")})
        assert "broken" in discover_analyses()
        with pytest.raises(PluginError, match=words) as caught:
            load_declaration("broken")
        assert str(caught.value).startswith("The analysis broken in /")
        assert "\n" not in str(caught.value)
        assert load_declaration("sound").name == "sound"

    def test_an_entry_point_to_nothing_is_listed_with_its_problem(self, install) -> None:
        install("gone", {}, module="gone.missing_module")
        result = discover_analyses()["missing-module"]
        assert result.problem == "the entry point 'gone' names the module gone.missing_module, which is not installed"
        with pytest.raises(PluginError, match="is not installed"):
            load_declaration("missing-module")


class TestSourceHash:
    def test_it_changes_with_every_module_of_an_analysis_that_is_a_package(self, tmp_path: Path) -> None:
        folder = tmp_path / "an_analysis"
        folder.mkdir()
        for name in ("__init__.py", "summary.py", "tables.py"):
            (folder / name).write_text("x = 1\n")
        plugin = PluginModule(name="an-analysis", module="an_analysis", path=folder / "__init__.py")
        versions = [hash_sources(plugin)]
        for name in ("__init__.py", "summary.py"):
            (folder / name).write_text("x = 2\n")
            versions.append(hash_sources(plugin))
        (folder / "tables.py").rename(folder / "figures.py")
        versions.append(hash_sources(plugin))
        assert len(set(versions)) == 4
        (folder / "figures.py").rename(folder / "tables.py")
        assert hash_sources(plugin) == versions[2]
        assert versions[2].startswith("an_analysis, an_analysis ")


def test_defaults_read_from_sources_are_those_of_the_declarations() -> None:
    known = {name: plugin.defaults for name, plugin in discover_analyses().items() if plugin.defaults is not None}
    assert {"prompt-correlation", "rank-intervals", "sensitivity-sweep", "weight-robustness"} <= set(known)
    assert "smart-filtering" not in known  # its options are in groups
    for name, defaults in known.items():
        declared = {parameter.name: parameter.default for parameter in load_declaration(name).parameters}
        assert list(declared.items()) == list(defaults.items())
