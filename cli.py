"""Run the command line from a checkout: python cli.py solve problems/heft-10.yaml"""

import sys

import solvers
from placeopt.cli import main

sys.modules.setdefault("placeopt_solvers", solvers)
main()
