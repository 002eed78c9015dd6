"""Loading and checking plugin classes: every trap of stevedore and pluggy that could bite."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from stevedore.extension import ExtensionManager

from rlvr_core.api import Family, Plugin, PluginDependencyError, PluginError, Strict, hookimpl
from rlvr_core.api.errors import RlvrError, StackError
from rlvr_core.plugins.checks import check_class
from rlvr_core.plugins.hooks import hook_problems, implementations
from rlvr_core.plugins.index import FIRST_PARTY, PluginIndex
from rlvr_core.plugins.loader import IndexedExtensionManager, Wanted, load_classes
from rlvr_core.plugins.ref import PluginRef

from .conftest import Made, MakeDistribution

GOOD = """
from rlvr_core.api import Plugin, hookimpl

class Made(Plugin):
    api_version = "1.0"

    @hookimpl
    def rlvr_keep_groups(self, groups):
        return [True for _ in groups]
"""


def load(made: Made, name: str = "made") -> type[Plugin]:
    index = PluginIndex.scan([str(made.folder)])
    installed = index.find(Family.VERIFIERS, name, "stack.yaml:5:5")
    ref = installed.ref(name, {})
    return load_classes([Wanted(installed, ref, "stack.yaml:5:5 (verifiers[0])")])[0]


def refused(made: Made) -> PluginError:
    with pytest.raises(PluginError) as caught:
        load(made)
    assert caught.value.origin == (
        "rlvr-plugin-made 0.1.0, needed by stack.yaml:5:5 (verifiers[0])"
    )
    return caught.value


def test_a_good_class_is_loaded(make_distribution: MakeDistribution) -> None:
    assert load(make_distribution(GOOD)).__name__ == "Made"


@pytest.mark.parametrize("statement", ["raise SystemExit(3)", "raise AssertionError('no')", "1/0"])
def test_no_exception_of_an_import_gets_past_the_loader(
    make_distribution: MakeDistribution, statement: str
) -> None:
    error = refused(make_distribution(statement))

    assert error.code == "RLVR-P102"
    assert error.cause is not None
    assert error.cause.startswith(
        {"raise S": "SystemExit", "raise A": "AssertionError"}.get(statement[:7], "ZeroDivision")
    )
    assert not isinstance(error, PluginDependencyError)


def test_ctrl_c_during_an_import_ends_the_program(make_distribution: MakeDistribution) -> None:
    with pytest.raises(KeyboardInterrupt):
        load(make_distribution("raise KeyboardInterrupt"))


def test_a_missing_dependency_is_told_from_a_missing_module_of_its_own(
    make_distribution: MakeDistribution,
) -> None:
    dependency = refused(make_distribution("import nowhere_to_be_found.part"))
    own = refused(make_distribution(GOOD, plugins={"made": "Absent"}))

    assert isinstance(dependency, PluginDependencyError)
    assert "pip install nowhere_to_be_found" in str(dependency.fix)
    assert not isinstance(own, PluginDependencyError)
    assert "has no attribute 'Absent'" in str(own.cause)


def test_a_module_that_is_not_in_the_wheel_is_the_plugins_own_fault(
    make_distribution: MakeDistribution,
) -> None:
    made = make_distribution(GOOD)
    (made.folder / f"{made.module}.py").unlink()

    error = refused(made)

    assert not isinstance(error, PluginDependencyError)
    assert "--force-reinstall" in str(error.fix)


def test_an_entry_point_that_names_a_module_is_refused(
    make_distribution: MakeDistribution,
) -> None:
    made = make_distribution(GOOD)
    info = next(made.folder.glob("*.dist-info")) / "entry_points.txt"
    info.write_text(f"[rlvr.verifiers]\nmade = {made.module}\n")

    error = refused(made)

    assert error.code == "RLVR-P104"
    assert "is not a plugin class" in error.message


def test_all_failures_are_in_one_error(make_distribution: MakeDistribution) -> None:
    made = [
        make_distribution("1/0", "rlvr-plugin-a", plugins={"a": "Made"}),
        make_distribution("import nowhere", "rlvr-plugin-b", plugins={"b": "Made"}),
        make_distribution("Made = 3", "rlvr-plugin-c", plugins={"c": "Made"}),
    ]
    index = PluginIndex.scan([str(one.folder) for one in made])
    wanted = [
        Wanted(plugin, plugin.ref(plugin.name, {}), f"stack.yaml:{line}:5")
        for line, plugin in enumerate(index.plugins)
    ]

    with pytest.raises(PluginError) as caught:
        load_classes(wanted)

    for part in ("ZeroDivisionError", "'nowhere'", "not a plugin class", "rlvr-plugin-c 0.1.0"):
        assert part in caught.value.message
    assert caught.value.message.count("RLVR-P10") == 3


def test_stevedores_own_list_of_entry_points_is_never_read(
    make_distribution: MakeDistribution,
) -> None:
    made = make_distribution(GOOD)
    entry_point = PluginIndex.scan([str(made.folder)]).plugins[0].entry_point
    ExtensionManager.ENTRY_POINT_CACHE[Family.VERIFIERS.entry_point_group] = []
    try:
        manager = IndexedExtensionManager(Family.VERIFIERS, [entry_point])
        assert manager.list_entry_points() == [entry_point]
        assert [extension.name for extension in manager] == ["made"]
        assert entry_point.dist is not None
        assert entry_point.dist.metadata["Name"] == "rlvr-plugin-made"
    finally:
        ExtensionManager.ENTRY_POINT_CACHE.clear()


# --- what a class must be

REF = PluginRef(Family.VERIFIERS, "made", "made", "made:Made", "rlvr-plugin-made", "0.1.0", {})


class Keeper(Plugin):
    api_version = "1.0"

    @hookimpl
    def rlvr_keep_groups(self, groups: Any) -> list[bool]:
        return [True for _ in groups]


def problem(cls: object, code: str = "RLVR-P104") -> str:
    with pytest.raises(PluginError) as caught:
        check_class(REF, cls)
    assert caught.value.code == code
    return caught.value.message + " " + str(caught.value.fix)


def test_a_class_that_fits_is_returned() -> None:
    assert check_class(REF, Keeper) is Keeper


@pytest.mark.parametrize(
    ("version", "said"),
    [
        ("2.0", "speaks plugin API 2.0, this core 1.0 pip install --upgrade rlvr-core"),
        ("1.1", "pip install --upgrade rlvr-core"),
        ("0.9", "pip install --upgrade rlvr-plugin-made"),
        ("one", "api_version is 'one'"),
        (1.0, "api_version is 1.0"),
    ],
)
def test_another_api_version_is_refused_with_the_side_to_upgrade(version: Any, said: str) -> None:
    cls = type("Made", (Keeper,), {"api_version": version})

    assert said in problem(cls, "RLVR-P103")


def test_an_older_minor_is_welcome(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rlvr_core.plugins.checks.API_VERSION", "1.3")

    assert check_class(REF, Keeper) is Keeper


def test_a_version_inherited_from_a_class_of_core_says_nothing() -> None:
    from rlvr_core.builtin.control_random import ControlRandom

    cls = type("Made", (ControlRandom,), {})

    assert "api_version is None" in problem(cls, "RLVR-P103")


@pytest.mark.parametrize("word", ["plugin", "timeout_s", "on_timeout", "concurrency", "weight"])
def test_a_config_may_not_declare_words_of_core(word: str) -> None:
    config = type("Config", (Strict,), {"__annotations__": {word: int}, word: 3})
    cls = type("Made", (Keeper,), {"Config": config})

    assert f"words that belong to core: {word}" in problem(cls)


def test_equality_by_value_is_refused() -> None:
    cls = type("Made", (Keeper,), {"__eq__": lambda self, other: True, "__hash__": lambda self: 1})

    assert "compares by value" in problem(cls)


def test_a_misspelt_hook_is_refused_with_a_suggestion() -> None:
    class Made(Plugin):
        api_version = "1.0"

        @hookimpl
        def rlvr_keep_group(self, groups: Any) -> None: ...

        def rlvr_verfy(self, batch: Any) -> None: ...

    said = problem(Made)

    assert "no hook 'rlvr_keep_group'; did you mean 'rlvr_keep_groups'?" in said
    assert "no hook 'rlvr_verfy'; did you mean 'rlvr_verify'?" in said


def test_a_hook_without_its_decorator_is_refused() -> None:
    class Made(Keeper):
        def rlvr_keep_groups(self, groups: Any) -> list[bool]:
            return []

    assert "rlvr_keep_groups lacks the decorator" in problem(Made)


def test_a_misspelt_argument_is_refused_with_a_suggestion() -> None:
    class Made(Plugin):
        api_version = "1.0"

        @hookimpl
        def rlvr_keep_groups(self, grups: Any) -> None: ...

    said = problem(Made)

    assert "takes 'grups'; did you mean 'groups'?" in said
    assert "offers: groups, session" in said


@pytest.mark.parametrize("option", ["tryfirst", "trylast"])
def test_options_that_change_the_order_are_refused(option: str) -> None:
    class Made(Plugin):
        api_version = "1.0"

        @hookimpl(**{option: True})
        def rlvr_keep_groups(self, groups: Any) -> None: ...

    assert f"asks for {option}" in problem(Made)


def test_wrappers_of_the_old_style_and_without_a_yield_are_refused() -> None:
    class Made(Plugin):
        api_version = "1.0"

        @hookimpl(hookwrapper=True)
        def rlvr_keep_groups(self, groups: Any) -> Any:
            yield

        @hookimpl(wrapper=True)
        def rlvr_gate_rewards(self, groups: Any) -> None: ...

    said = problem(Made)

    assert "use wrapper=True" in said
    assert "must hold a 'yield'" in said


def test_a_plugin_without_a_hook_is_refused() -> None:
    cls = type("Made", (Plugin,), {"api_version": "1.0"})

    assert "implements no hook" in problem(cls)


def test_verifiers_must_be_complete() -> None:
    from rlvr_core.api import RowVerifier, Verifier

    unfinished = type("Made", (RowVerifier,), {"api_version": "1.0"})
    inverted = type(
        "Made",
        (Verifier,),
        {
            "api_version": "1.0",
            "GroundTruth": Strict,
            "score_range": (1.0, 0.0),
            "rlvr_verify": hookimpl(lambda self, batch: []),
        },
    )

    assert "does not implement verify_row; it does not set GroundTruth" in problem(unfinished)
    assert "is not a finite range" in problem(inverted)


def test_looking_for_hooks_evaluates_no_property() -> None:
    class Made(Keeper):
        @property
        def expensive(self) -> None:
            raise RuntimeError

    assert hook_problems(Made) == []
    assert [found.hook for found in implementations(Made)] == ["rlvr_keep_groups"]


# --- the index


def test_names_match_with_dashes_underscores_and_case_folded(
    make_distribution: MakeDistribution,
) -> None:
    made = make_distribution(GOOD, plugins={"Math_Sympy": "Made"})
    index = PluginIndex.scan([str(made.folder)])

    for name in ("math-sympy", "MATH_SYMPY", "Math-Sympy", "rlvr_plugin_made/math-sympy"):
        assert index.find(Family.VERIFIERS, name, "here").name == "Math_Sympy"


def test_two_distributions_with_one_name_are_refused_only_when_it_is_asked_for(
    make_distribution: MakeDistribution,
) -> None:
    first = make_distribution(GOOD, "rlvr-plugin-a", plugins={"x": "Made", "y": "Made"})
    second = make_distribution(GOOD, "rlvr-plugin-b", "0.2.0", plugins={"X": "Made"})
    index = PluginIndex.scan([str(first.folder), str(second.folder)])

    assert index.find(Family.VERIFIERS, "y", "here").distribution == "rlvr-plugin-a"
    assert index.find(Family.VERIFIERS, "rlvr-plugin-b/x", "here").version == "0.2.0"
    with pytest.raises(PluginError) as caught:
        index.find(Family.VERIFIERS, "x", "stack.yaml:5:5: verifiers[0]")

    assert caught.value.code == "RLVR-P101"
    assert "rlvr-plugin-a 0.1.0 and rlvr-plugin-b 0.2.0" in caught.value.message
    assert "pip uninstall" in str(caught.value.fix)


def test_one_name_in_two_families_is_no_duplicate(make_distribution: MakeDistribution) -> None:
    first = make_distribution(GOOD, "rlvr-plugin-a", group="rlvr.verifiers")
    second = make_distribution(GOOD, "rlvr-plugin-b", group="rlvr.samplers")

    assert PluginIndex.scan([str(first.folder), str(second.folder)]).duplicates() == []


def test_the_first_distribution_on_the_path_hides_the_others(
    make_distribution: MakeDistribution,
) -> None:
    old = make_distribution(GOOD, version="0.1.0")
    new = make_distribution(GOOD, version="0.2.0")

    index = PluginIndex.scan([str(new.folder), str(old.folder)])

    assert [plugin.version for plugin in index.plugins] == ["0.2.0"]
    assert index.shadowed == (f"rlvr-plugin-made 0.1.0 in {old.folder}",)


def test_a_newer_version_without_plugins_hides_an_older_one_with_them(
    make_distribution: MakeDistribution,
) -> None:
    old = make_distribution(GOOD, version="0.1.0")
    new = make_distribution(GOOD, version="0.2.0", group="something.else")

    assert PluginIndex.scan([str(new.folder), str(old.folder)]).plugins == ()


def missing(index: PluginIndex, family: Family, name: str) -> RlvrError:
    with pytest.raises(RlvrError) as caught:
        index.find(family, name, "stack.yaml:12:13: verifiers[0]")
    assert caught.value.code == "RLVR-S103"
    assert caught.value.message.startswith("stack.yaml:12:13: verifiers[0]: ")
    return caught.value


def test_the_plugins_of_this_repository_are_advertised_and_no_others() -> None:
    folders = {folder.name for folder in (Path(__file__).parents[2] / "plugins").iterdir()}

    assert {name for names in FIRST_PARTY.values() for name in names} == folders


def test_a_plugin_that_is_not_installed_is_explained(make_distribution: MakeDistribution) -> None:
    core = make_distribution(GOOD, "rlvr-core", plugins={"exact-match": "Made"})
    sampler = make_distribution(GOOD, "rlvr-plugin-s", plugins={"s": "Made"}, group="rlvr.samplers")
    index = PluginIndex.scan([str(core.folder), str(sampler.folder)])

    typo = missing(index, Family.VERIFIERS, "exat-match")
    known = missing(index, Family.VERIFIERS, "Math_SymPy")
    known_typo = missing(index, Family.VERIFIERS, "math-simpy")
    elsewhere = missing(index, Family.VERIFIERS, "s")

    assert "did you mean 'exact-match' (rlvr-core 0.1.0, installed)?" in typo.message
    assert "installed verifiers: exact-match" in str(typo.cause)
    assert re.search(r"known but not installed: .*\bmath-sympy\b", str(typo.cause))
    assert known.fix == "pip install rlvr-plugin-math-sympy"
    assert "did you mean 'math-sympy' (not installed)?" in known_typo.message
    assert "belongs under 'samplers'" in elsewhere.message


def test_a_misspelt_group_is_noticed(make_distribution: MakeDistribution) -> None:
    made = make_distribution(GOOD, group="rlvr.verifier")

    index = PluginIndex.scan([str(made.folder)])

    assert index.plugins == ()
    assert index.unknown_groups == (("rlvr.verifier", "rlvr-plugin-made"),)
    with pytest.raises(StackError) as caught:
        index.find(Family.VERIFIERS, "made", "stack.yaml:3:5: verifiers[0]")
    assert caught.value.code == "RLVR-S103"
    assert "'made' is registered in 'rlvr.verifier', which nobody reads" in caught.value.message
    assert caught.value.cause == "verifiers register in 'rlvr.verifiers'"
    assert "rlvr plugins doctor" in str(caught.value.fix)


def test_nothing_in_core_loads_a_whole_group_of_entry_points() -> None:
    import rlvr_core

    sources = Path(rlvr_core.__file__).parent.rglob("*.py")

    assert [path for path in sources if "load_setuptools_entrypoints" in path.read_text()] == []


# --- a reference by itself


def test_a_reference_builds_its_plugin_in_another_process(
    make_distribution: MakeDistribution,
) -> None:
    import pickle

    made = make_distribution(GOOD)
    ref = PluginIndex.scan([str(made.folder)]).plugins[0].ref("mine", {})

    again = pickle.loads(pickle.dumps(ref))

    assert again == ref
    assert again.blame == "rlvr-plugin-made 0.1.0"
    assert again.build().name == "mine"


def test_a_constructor_that_raises_is_the_plugins_fault(
    make_distribution: MakeDistribution,
) -> None:
    source = GOOD + "\n    def __init__(self, config, *, name):\n        raise KeyError('model')\n"
    ref = PluginIndex.scan([str(make_distribution(source).folder)]).plugins[0].ref("mine", {})

    with pytest.raises(PluginError, match="being constructed") as caught:
        ref.build()

    assert caught.value.code == "RLVR-P105"
    assert "KeyError: 'model'" in str(caught.value.cause)


def test_a_constructor_of_its_own_still_gets_name_and_config(
    make_distribution: MakeDistribution,
) -> None:
    source = GOOD + "\n    def __init__(self, config, *, name):\n        self.own = 1\n"
    ref = PluginIndex.scan([str(make_distribution(source).folder)]).plugins[0].ref("mine", {})

    plugin = ref.build()

    assert (plugin.name, plugin.config) == ("mine", Strict())


def test_a_misspelt_verify_row_is_refused_with_a_suggestion() -> None:
    from rlvr_core.api import RowVerifier

    def method(self: Any, row: Any) -> None: ...

    def made(name: str) -> str:
        more = {"api_version": "1.0", "GroundTruth": Strict, name: method}
        return problem(type("Made", (RowVerifier,), more))

    for name in ("verify_rows", "verifyRow", "veriy_row"):
        assert f"has {name!r}, which is never called; did you mean 'verify_row'?" in made(name)
    assert "it does not implement verify_row upgrade" in made("helper")
