"""Place the operators of a computation graph on devices, and know how far from optimal the placement is.

    import placeopt as po

    problem = po.load("problems/inception.yaml")
    result = po.solve(problem, "cp-sat", time_limit=30)
    print(result.objective, result.bound, result.gap)

Nothing here prints, reads the environment or keeps global state; names load on first use.
"""


def _homes() -> dict[str, tuple[str, str]]:
    """The module of each public name, and its name there: the imports of the stub, one on each line.

    No module is imported for that: Ctrl-C ends the command without a traceback once `placeopt.cli` runs.
    """
    with open(f"{__file__.rpartition('.')[0]}.pyi", encoding="utf-8") as stub:
        imports = [line.split() for line in stub if line.startswith("from ")]
    return {public: (module, name) for _, module, _, name, _, public in imports}


_HOME = _homes()

__all__ = sorted(_HOME)


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name == "__version__":
        return import_module("placeopt.model.versions").version_of()
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = _HOME[name]
    return getattr(import_module(module), attribute)


def __dir__() -> list[str]:
    return __all__
