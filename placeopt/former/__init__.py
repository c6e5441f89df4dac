"""Former names of modules, such as `placeopt.ir`, for packages that were written before these modules moved.

`placeopt.__path__` ends with this folder, so that `import placeopt.ir` finds `placeopt/former/ir.py`.
"""
